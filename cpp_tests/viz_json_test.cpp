// cpp_tests/viz_json_test.cpp — the graph as JSON (that it parses is tested from Python)
// SPDX-License-Identifier: MIT
#include <burtorch/burtorch.hpp>
#include <burtorch/viz/json.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace bt = burtorch;

TEST_CASE("the tiny part of a graph") {
  bt::Tape<double> tape;
  const bt::Value<double> a(tape, -41.0);
  a.setLabel("a");
  const auto root = sqr(a) / 2.0;
  backward(root);
  const std::string name = BURTORCH_LABELS ? "\"a\"" : "null";
  const std::string kind = BURTORCH_LABELS ? "parameter" : "leaf";
  CHECK(buildJsonGraph(root, "a \"title\"") ==
        "{\"title\":\"a \\\"title\\\"\",\"root\":2,\"more\":0,\"dtype\":\"float64\",\"nodes\":[\n"
        "{\"i\":0,\"op\":\"leaf\",\"symbol\":\"leaf\",\"name\":" +
            name + ",\"value\":-41,\"grad\":-41,\"kind\":\"" + kind +
            "\",\"args\":[],\"local\":[]},\n"
            "{\"i\":1,\"op\":\"sqr\",\"symbol\":\"x^2\",\"name\":null,\"value\":1681,\"grad\":0.5,"
            "\"kind\":\"inner\",\"args\":[{\"node\":0}],\"local\":[-82]},\n"
            "{\"i\":2,\"op\":\"div\",\"symbol\":\"/\",\"name\":null,\"value\":840.5,\"grad\":1,"
            "\"kind\":\"root\",\"args\":[{\"node\":1},{\"const\":2}],\"local\":[0.5]}\n]}\n");
}

TEST_CASE("limits, other scalars, numbers that JSON lacks") {
  bt::Tape<float> tape;
  const bt::Value<float> a(tape, -1.0f);
  const auto root = exp(logarithm(a));
  const std::string text = buildJsonGraph(root, "", {.depth = 1});
  CHECK(text.find("\"more\":1,\"dtype\":\"float32\"") != std::string::npos);
  CHECK(text.find("\"value\":\"nan\"") != std::string::npos);
  CHECK(text.find("\"args\":[{\"node\":0}],\"local\":[-1]") != std::string::npos);
}
