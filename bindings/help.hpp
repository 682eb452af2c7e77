// bindings/help.hpp — what each function of the table computes, for its help
// SPDX-License-Identifier: MIT
#pragma once

#include "value.hpp"

#include <string>
#include <utility>

namespace burtorch_python {

// The name in Python, and the meaning.
inline constexpr std::pair<const char*, const char*> meanings[] = {
    {"relu", "max(0, x)"},
    {"tanh", "tanh x"},
    {"exp", "eˣ"},
    {"negative_log", "−ln x"},
    {"sigmoid", "1/(1 + e⁻ˣ)"},
    {"inv", "1/x"},
    {"sqr", "x²"},
    {"pow3", "x³"},
    {"log", "ln x"},
    {"sqrt", "√x"},
    {"inv_sqrt", "1/√x"},
    {"negative", "−x"},
    {"abs", "|x|"},
    {"sin", "sin x"},
    {"cos", "cos x"},
    {"tan", "tan x"},
    {"asin", "arcsin x"},
    {"acos", "arccos x"},
    {"atan", "arctan x"},
    {"sinh", "sinh x"},
    {"cosh", "cosh x"},
    {"erf", "erf x = 2/√π ∫ e^(−t²) dt from 0 to x"},
    {"log1p", "ln(1 + x), exact near 0"},
    {"expm1", "eˣ − 1, exact near 0"},
    {"softplus", "ln(1 + eˣ)"},
    {"gelu", "x Φ(x) with the normal distribution Φ(x) = (1 + erf(x/√2))/2"},
    {"silu", "x/(1 + e⁻ˣ)"},
    {"add", "x + y"},
    {"sub", "x − y"},
    {"mul", "x y"},
    {"mul_by_constant", "x y, not differentiated by y"},
    {"div", "x/y"},
    {"mean", "(x + y)/2"},
    {"add_squares", "x² + y²"},
    {"mean_squares", "(x² + y²)/2"},
    {"negative_mean", "−(x + y)/2"},
    {"pow", "x to the power of y"},
    {"min", "the smaller of x and y"},
    {"max", "the larger of x and y"},
    {"atan2", "the angle of the point whose ordinate is x and whose abscissa is y"},
    {"hypot", "√(x² + y²)"},
    {"clamp", "x, but lo if it is smaller and hi if it is larger"},
    {"reduce_sum", "Σxᵢ"},
    {"reduce_sub", "x₁ − Σxᵢ over the others"},
    {"reduce_mul", "Πxᵢ"},
    {"reduce_mean", "Σxᵢ/n"},
    {"reduce_sum_of_squares", "Σxᵢ²"},
    {"reduce_mean_squares", "Σxᵢ²/n"},
    {"reduce_negative_mean", "−Σxᵢ/n"},
    {"reduce_min", "the smallest"},
    {"reduce_max", "the largest"},
    {"variance", "Σ(xᵢ − mean)²/(n − 1)"},
    {"variance_biased", "Σ(xᵢ − mean)²/n"},
    {"inner_product", "Σxᵢyᵢ"},
    {"inner_product_with_bias", "Σxᵢyᵢ + bias"},
};

// Help that begins with a signature for inspect.signature, and says what is computed of what.
inline const char* help(const std::string& name, const char* parameters, const char* operands) {
  std::string text = name + parameters + "\n--\n\n";
  for (const auto& [function, meaning] : meanings)
    if (name == function) text += std::string(meaning) + "; ";
  return keep(text + operands);
}

} // namespace burtorch_python
