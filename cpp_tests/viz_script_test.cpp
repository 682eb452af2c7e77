// cpp_tests/viz_script_test.cpp — the data and the labels in scripts (running them: tests/test_viz.py)
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/viz/script.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

namespace bt = burtorch;
namespace viz = burtorch::viz;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a function of numbers gives one curve") {
  const std::string text =
      bt::generatePlot([](double x) { return x * x; }, 0, 2, {.title = "x\"", .x = "x"}, 3);
  CHECK(has(text, "title = \"x\\\"\"\nx_label = \"x\"\ny_label = \"\"\n"));
  CHECK(has(text, "curves = [(\"\",\n    [0, 1, 2],\n    [0, 1, 4])]\n"));
  CHECK(has(text, "matplotlib.use(\"Agg\")"));
  CHECK(has(text, "fig.savefig(output"));
}

TEST_CASE("a function of Values gives its derivative as well, and leaves the current tape alone") {
  const std::size_t before = bt::Tape<double>::current().size();
  const auto f = [](const bt::Value<double>& x) { return x * x; };
  const std::string text = bt::generatePlot(f, -1, 1, {}, 3);
  CHECK(has(text, "(\"value\",\n    [-1, 0, 1],\n    [1, 0, 1])"));
  CHECK(has(text, "(\"derivative\",\n    [-1, 0, 1],\n    [-2, 0, 2])"));
  CHECK(bt::Tape<double>::current().size() == before);
}

TEST_CASE("numbers that are none are written as Python knows them here") {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> matrix{{1, inf},
                                                {-inf, std::numeric_limits<double>::quiet_NaN()}};
  const std::string text = bt::generateHeatMapBasic(matrix);
  CHECK(has(text, "nan, inf = float(\"nan\"), float(\"inf\")\n"));
  CHECK(has(text, "cells = [[1, inf],\n    [-inf, nan]]\n"));
}

TEST_CASE("a matrix of Values") {
  bt::Tape<float> tape;
  std::vector<std::vector<bt::Value<float>>> matrix(2);
  for (auto& row : matrix)
    for (int i = 0; i < 2; ++i) row.emplace_back(tape, 0.5f);
  CHECK(has(bt::generateHeatMapBasic(matrix), "cells = [[0.5, 0.5],\n    [0.5, 0.5]]\n"));
}

TEST_CASE("a heat map with items and counters") {
  const auto item = [](std::size_t i, std::size_t j) {
    return std::string(i, 'a') + "'" + std::string(j, 'b');
  };
  const auto counter = [](std::size_t i, std::size_t j) { return 10 * i + j; };
  const std::string text = bt::generateHeatMap(2, 2, item, counter, {.rows = {"r", "s"}});
  CHECK(has(text, "rows = [\"r\", \"s\"]\ncolumns = []\n"));
  CHECK(has(text, "cells = [[0, 1],\n    [10, 11]]\n"));
  CHECK(has(text, "items = [[\"'\\n0\", \"'b\\n1\"],\n    [\"a'\\n10\", \"a'b\\n11\"]]\n"));
}

TEST_CASE("curves and histograms") {
  CHECK(has(bt::generateCurves({{"loss", {0, 1}, {2, 1}}}, {}, viz::Scale::logarithmic),
            "y_scale = \"log\"\ncurves = [(\"loss\",\n    [0, 1],\n    [2, 1])]\n"));
  CHECK(has(bt::generateHistogram(std::vector{1.5, 2.0}, {}, 7), "bins = 7\nnumbers = [1.5, 2]\n"));
}

TEST_CASE("long lists are broken into lines") {
  const std::string text = bt::generateHistogram(std::vector<double>(100, 0.25));
  for (std::size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = text.find('\n', at);
    CHECK((end == std::string::npos ? text.size() : end) - at < 110);
  }
}

TEST_CASE("what can't be drawn is refused") {
  using Rows = std::vector<std::vector<double>>;
  const auto said = [](auto&& f) { return std::string(errorOf(f).what()); };
  CHECK(said([] {
          return bt::generateHeatMapBasic(Rows{{1, 2}, {3}});
        }) == "heat map: row 1 has 1 columns, the first has 2");
  CHECK(said([] { return bt::generateHeatMapBasic(Rows{}); }) ==
        "heat map: 0 rows of 0 columns have nothing to show");
  CHECK(said([] {
          return bt::generateHeatMapBasic(Rows{{1}}, {.columns = {"a", "b"}});
        }) == "heat map: 2 column labels for 1 columns");
  CHECK(said([] { return bt::generateCurves({{"", {1}, {}}}); }) == "curve: 1 x for 0 y");
  CHECK(said([] { return bt::generatePlot([](double x) { return x; }, 0, 1, {}, 1); }) ==
        "plot: fewer than 2 points make no curve");
}
