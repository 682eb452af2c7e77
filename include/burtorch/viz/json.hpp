// burtorch/viz/json.hpp — a graph as JSON, for viewers that draw it themselves
// SPDX-License-Identifier: MIT
//
//   {"title": "", "root": 7, "more": 0, "dtype": "float64", "nodes": [
//     {"i": 0, "op": "leaf", "symbol": "leaf", "name": "a", "value": -41, "grad": -35,
//      "kind": "parameter", "args": [], "local": []},
//     {"i": 7, …, "args": [{"node": 6}, {"const": 2}], "local": [0.5]}]}
//
// The nodes stand in the order of their indices. `more` counts those left out by a limit; `args`
// still names them. `local` has one derivative of the result for each operand that is a node.
// Numbers that JSON lacks are the strings "nan", "inf" and "-inf".
#pragma once

#include <burtorch/viz/graph.hpp>
#include <burtorch/viz/text.hpp>

#include <string>
#include <string_view>
#include <type_traits>

BURTORCH_BEGIN_NAMESPACE

template <class T, class... O>
std::string buildJsonGraph(const Value<T, O...>& root, std::string_view title = "",
                           const viz::Selection& selection = {}) {
  viz::Selection nodes = selection;
  nodes.blocks = viz::Blocks::nodes;
  const auto graph = viz::graphOf(root, nodes);
  const auto& tape = graph.tape;
  std::string out =
      "{\"title\":" + viz::jsonString(title) + ",\"root\":" + std::to_string(graph.roots[0]) +
      ",\"more\":" + std::to_string(graph.more) + ",\"dtype\":\"" +
      (std::is_same_v<T, double> ? "float64" : "float" + std::to_string(8 * sizeof(T))) +
      "\",\"nodes\":[";
  const char* comma = "";
  for (const viz::Node& node : graph.nodes) {
    const OpNames names = graph.tape.namesOf(node.record);
    const std::string label = tape.label(node.index);
    out.append(comma).append("\n{\"i\":").append(std::to_string(node.index));
    out.append(",\"op\":").append(viz::jsonString(names.function));
    out.append(",\"symbol\":").append(viz::jsonString(names.symbol));
    out.append(",\"name\":").append(label.empty() ? "null" : viz::jsonString(label));
    out.append(",\"value\":").append(viz::jsonNumber(tape.values()[node.index]));
    out.append(",\"grad\":").append(viz::jsonNumber(tape.grads()[node.index]));
    out.append(",\"kind\":\"").append(viz::nameOf(graph.kindOf(node)));
    std::string args, local;
    if (!graph.isLeaf(node))
      for (const auto& argument : viz::argumentsOf(tape, tape.records()[node.record])) {
        if (!args.empty()) args += ',';
        args += argument.isNode ? "{\"node\":" + std::to_string(argument.node) + "}"
                                : "{\"const\":" + viz::jsonNumber(argument.value) + "}";
        if (!argument.isNode) continue;
        if (!local.empty()) local += ',';
        local += viz::jsonNumber(argument.derivative);
      }
    out.append("\",\"args\":[").append(args).append("],\"local\":[").append(local).append("]}");
    comma = ",";
  }
  return out += "\n]}\n";
}

BURTORCH_END_NAMESPACE
