// burtorch/viz/script.hpp — plots and heat maps as complete Python scripts for Matplotlib
// SPDX-License-Identifier: MIT
//
// Nothing is drawn here: each function returns the text of a script that holds its data. Run as
// `python3 script.py picture.png` it writes the picture (.svg and .pdf likewise); without an
// argument it opens a window, or writes burtorch.png where there is no display. showScript
// (show.hpp) runs one at a breakpoint.
#pragma once

#include <burtorch/backward.hpp>
#include <burtorch/tape/tape.hpp>
#include <burtorch/value.hpp>
#include <burtorch/viz/text.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace viz {

struct PlotLabels {
  std::string title = {}, x = {}, y = {};
};

struct Curve {
  std::string name;
  std::vector<double> x, y;
};

enum class Scale { linear, logarithmic };

struct HeatMapLabels {
  std::string title = {}, x = {}, y = {};
  std::vector<std::string> rows = {}, columns = {}; // one for each, or none
};

namespace detail {

inline constexpr std::string_view scriptHead =
    R"py(# Made by burtorch. python3 THIS_FILE [picture.png] draws it.
import os
import sys

import matplotlib

output = sys.argv[1] if len(sys.argv) > 1 else None
displays = sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
if not output and not displays:
    output = "burtorch.png"
if output:
    matplotlib.use("Agg")

import matplotlib.pyplot as plt

nan, inf = float("nan"), float("inf")
)py";

inline constexpr std::string_view scriptTail = R"py(ax.set_title(title, parse_math=False)
ax.set_xlabel(x_label, parse_math=False)
ax.set_ylabel(y_label, parse_math=False)
fig.tight_layout()
if output:
    fig.savefig(output, dpi=120)
else:
    plt.show()
)py";

// Assignments of data, then what is done with them.
class Script {
public:
  Script() : text_(scriptHead) {}
  Script& set(std::string_view name, const std::string& expression) {
    text_.append(name).append(" = ").append(expression).append("\n");
    return *this;
  }
  std::string draw(std::string_view code) const {
    return text_ + std::string(code) + std::string(scriptTail);
  }

private:
  std::string text_;
};

// [a, b, c], with at most so many items on a line.
template <class Range, class Text>
std::string pythonList(const Range& items, const Text& text, std::size_t perLine = 12) {
  std::string out = "[";
  std::size_t i = 0;
  for (const auto& item : items) {
    if (i != 0) out += i % perLine == 0 ? ",\n    " : ", ";
    ++i;
    out += text(item);
  }
  return out += "]";
}
inline std::string pythonList(const std::vector<std::string>& texts) {
  return pythonList(texts, [](const std::string& text) { return pythonString(text); });
}
inline std::string pythonList(std::span<const double> numbers) {
  return pythonList(numbers, [](double x) { return numberText(x); });
}

// The number that a number, a Value, or something made of one is.
template <class X> double plainNumber(const X& x) {
  if constexpr (AnyValue<X>) return static_cast<double>(x.dataCopy());
  else return static_cast<double>(x);
}

inline std::string linesScript(const std::vector<Curve>& curves, const PlotLabels& labels,
                               Scale y) {
  const auto curve = [](const Curve& c) {
    return "(" + pythonString(c.name) + ",\n    " + pythonList(c.x) + ",\n    " + pythonList(c.y) +
           ")";
  };
  return Script()
      .set("title", pythonString(labels.title))
      .set("x_label", pythonString(labels.x))
      .set("y_label", pythonString(labels.y))
      .set("y_scale", y == Scale::linear ? "\"linear\"" : "\"log\"")
      .set("curves", pythonList(curves, curve, 1))
      .draw(R"py(
fig, ax = plt.subplots(figsize=(8, 5))
for name, x, y in curves:
    ax.plot(x, y)
ax.set_yscale(y_scale)
ax.grid(color="0.9")
ax.spines[["top", "right"]].set_visible(False)
if any(name for name, _, _ in curves):
    legend = ax.legend(ax.lines, ["curve"] * len(curves), frameon=False)
    for text, (name, _, _) in zip(legend.get_texts(), curves):
        text.set(text=name, parse_math=False)
)py");
}

// cells[row][column] holds a number; items as well, if there are any, the text written in the cell.
inline std::string heatMapScript(const std::vector<std::vector<double>>& cells,
                                 const std::vector<std::vector<std::string>>& items,
                                 const HeatMapLabels& labels) {
  const auto rowOfNumbers = [](const std::vector<double>& row) { return pythonList(row); };
  const auto rowOfTexts = [](const std::vector<std::string>& row) { return pythonList(row); };
  return Script()
      .set("title", pythonString(labels.title))
      .set("x_label", pythonString(labels.x))
      .set("y_label", pythonString(labels.y))
      .set("rows", pythonList(labels.rows))
      .set("columns", pythonList(labels.columns))
      .set("cells", pythonList(cells, rowOfNumbers, 1))
      .set("items", pythonList(items, rowOfTexts, 1))
      .draw(R"py(
height, width = len(cells), len(cells[0])
inch = 0.55 if items else 0.3
fig, ax = plt.subplots(figsize=(min(40, max(5, inch * width + 2)), min(40, max(4, inch * height + 1.5))))
image = ax.imshow(cells, cmap="Blues" if items else "viridis", aspect="auto")
middle = (image.norm.vmin + image.norm.vmax) / 2
for i, texts in enumerate(items):
    for j, text in enumerate(texts):
        colour = "white" if cells[i][j] > middle else "0.15"
        ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=8, parse_math=False)
if rows:
    ax.set_yticks(range(height), rows, parse_math=False)
if columns:
    ax.set_xticks(range(width), columns, parse_math=False)
fig.colorbar(image, ax=ax)
)py");
}

inline void demandLabels(const char* what, std::size_t got, std::size_t wanted) {
  if (got != 0 && got != wanted)
    burtorch::detail::fail(ErrorKind::badArgument, "heat map: " + std::to_string(got) + " " + what +
                                                       " labels for " + std::to_string(wanted) +
                                                       " " + what + "s");
}

inline void demandCells(std::size_t rows, std::size_t columns, const HeatMapLabels& labels) {
  if (rows == 0 || columns == 0)
    burtorch::detail::fail(ErrorKind::badArgument, "heat map: " + std::to_string(rows) +
                                                       " rows of " + std::to_string(columns) +
                                                       " columns have nothing to show");
  demandLabels("row", labels.rows.size(), rows);
  demandLabels("column", labels.columns.size(), columns);
}

} // namespace detail

} // namespace viz

// Curves through given points.
inline std::string generateCurves(const std::vector<viz::Curve>& curves,
                                  const viz::PlotLabels& labels = {},
                                  viz::Scale y = viz::Scale::linear) {
  for (const viz::Curve& curve : curves)
    if (curve.x.size() != curve.y.size())
      detail::fail(ErrorKind::badArgument, "curve: " + std::to_string(curve.x.size()) + " x for " +
                                               std::to_string(curve.y.size()) + " y");
  return viz::detail::linesScript(curves, labels, y);
}

// y = f(x) at so many points of an interval. A function of numbers gives one curve; one that takes
// a Value<double> and returns one gives two: itself and its derivative.
template <class F>
std::string generatePlot(F&& f, double xStart, double xEnd, const viz::PlotLabels& labels = {},
                         std::size_t points = 201) {
  if (points < 2) detail::fail(ErrorKind::badArgument, "plot: fewer than 2 points make no curve");
  viz::Curve curve{"", {}, {}}, slope{"derivative", {}, {}};
  Tape<double> tape;
  const TapeScope scope(tape);
  for (std::size_t i = 0; i < points; ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(points - 1);
    const double x = xStart + (xEnd - xStart) * part;
    curve.x.push_back(x);
    if constexpr (std::is_invocable_v<F&, double>) {
      curve.y.push_back(viz::detail::plainNumber(f(x)));
    } else {
      const Value<double> at(tape, x);
      const Value<double> y = f(at);
      backward(y);
      curve.y.push_back(y.dataCopy());
      slope.x.push_back(x);
      slope.y.push_back(at.gradCopy());
      tape.clear();
    }
  }
  std::vector<viz::Curve> curves{curve};
  if (!slope.x.empty()) {
    curves[0].name = "value";
    curves.push_back(slope);
  }
  return viz::detail::linesScript(curves, labels, viz::Scale::linear);
}

// How often numbers (or Values) fall into each of so many equal intervals.
template <class Range>
std::string generateHistogram(const Range& numbers, const viz::PlotLabels& labels = {},
                              std::size_t bins = 50, viz::Scale y = viz::Scale::linear) {
  const auto text = [](const auto& x) { return viz::numberText(viz::detail::plainNumber(x)); };
  return viz::detail::Script()
      .set("title", viz::pythonString(labels.title))
      .set("x_label", viz::pythonString(labels.x))
      .set("y_label", viz::pythonString(labels.y))
      .set("y_scale", y == viz::Scale::linear ? "\"linear\"" : "\"log\"")
      .set("bins", std::to_string(bins))
      .set("numbers", viz::detail::pythonList(numbers, text))
      .draw(R"py(
finite = [x for x in numbers if abs(x) < inf]
fig, ax = plt.subplots(figsize=(8, 5))
ax.hist(finite, bins=bins, log=y_scale == "log", color="#5b8fd0", edgecolor="white", linewidth=0.5)
if len(finite) < len(numbers):
    title += f" ({len(numbers) - len(finite)} not finite)"
ax.spines[["top", "right"]].set_visible(False)
)py");
}

// The numbers (or Values) of a matrix, given as a range of rows, as colours.
template <class Matrix>
std::string generateHeatMapBasic(const Matrix& matrix, const viz::HeatMapLabels& labels = {}) {
  std::vector<std::vector<double>> cells;
  for (const auto& row : matrix) {
    auto& numbers = cells.emplace_back();
    for (const auto& x : row) numbers.push_back(viz::detail::plainNumber(x));
    if (numbers.size() != cells[0].size())
      detail::fail(ErrorKind::badArgument, "heat map: row " + std::to_string(cells.size() - 1) +
                                               " has " + std::to_string(numbers.size()) +
                                               " columns, the first has " +
                                               std::to_string(cells[0].size()));
  }
  viz::detail::demandCells(cells.size(), cells.empty() ? 0 : cells[0].size(), labels);
  return viz::detail::heatMapScript(cells, {}, labels);
}

// Cells that carry a text, itemGetter(row, column), and are coloured by a number,
// counterGetter(row, column), which is written below it: how often each pair of letters occurs, say.
template <class ItemGetter, class CounterGetter>
std::string generateHeatMap(std::size_t rows, std::size_t cols, ItemGetter&& itemGetter,
                            CounterGetter&& counterGetter, const viz::HeatMapLabels& labels = {}) {
  viz::detail::demandCells(rows, cols, labels);
  std::vector<std::vector<double>> cells(rows);
  std::vector<std::vector<std::string>> items(rows);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < cols; ++j) {
      const double counter = viz::detail::plainNumber(counterGetter(i, j));
      cells[i].push_back(counter);
      items[i].push_back(std::string(itemGetter(i, j)) + "\n" + viz::numberText(counter, 6));
    }
  return viz::detail::heatMapScript(cells, items, labels);
}

BURTORCH_END_NAMESPACE
