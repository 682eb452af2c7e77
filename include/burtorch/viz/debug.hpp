// burtorch/viz/debug.hpp — functions to call from a debugger, at a breakpoint
// SPDX-License-Identifier: MIT
//
// Include this header in one source file of the program. Then, in gdb or lldb:
//
//   call burtorch::debugDot(v)                a picture of v's graph; prints the path of the file
//   call burtorch::debugDot(v, "v.png")       the same, to a file of that name and format
//   call burtorch::debugString(v)             v as a line of text
//
// For Value<double> and Value<float>: debuggers call functions that exist, they make none. So these are
// kept even if nothing in the program calls them. What they return lasts until the next call.
#pragma once

#include <burtorch/viz/show.hpp>

#include <exception>
#include <string>

// The functions appear in the program, whatever the optimizer and the linker think of it.
#if defined(__has_attribute)
#if __has_attribute(retain)
#define BURTORCH_FOR_DEBUGGERS __attribute__((used, retain, noinline)) inline
#else
#define BURTORCH_FOR_DEBUGGERS __attribute__((used, noinline)) inline
#endif
#else
#define BURTORCH_FOR_DEBUGGERS BURTORCH_NOINLINE inline
#endif

BURTORCH_BEGIN_NAMESPACE

namespace viz::detail {

// At a breakpoint an exception would have nobody to catch it.
template <class F> const char* debugText(const F& f) {
  static std::string text;
#if BURTORCH_EXCEPTIONS
  try {
    text = f();
  } catch (const std::exception& error) {
    text = error.what();
  }
#else
  text = f();
#endif
  return text.c_str();
}

} // namespace viz::detail

BURTORCH_END_NAMESPACE

// Not in the inline namespace: debuggers don't look into it. The types of the arguments are, so units
// with different switches still don't mix.
namespace burtorch {

#define BURTORCH_DEBUG_FUNCTIONS(T)                                                                \
  BURTORCH_FOR_DEBUGGERS const char* debugString(const Value<T>& v) {                              \
    return viz::detail::debugText([&] { return asString(v); });                                    \
  }                                                                                                \
  BURTORCH_FOR_DEBUGGERS const char* debugDot(const Value<T>& v, const char* path) {               \
    return viz::detail::debugText([&] { return saveGraphPicture(v, path, asString(v)); });         \
  }                                                                                                \
  BURTORCH_FOR_DEBUGGERS const char* debugDot(const Value<T>& v) {                                 \
    return debugDot(v, viz::detail::temporaryPath(".svg").c_str());                                \
  }
BURTORCH_DEBUG_FUNCTIONS(double)
BURTORCH_DEBUG_FUNCTIONS(float)
#undef BURTORCH_DEBUG_FUNCTIONS

} // namespace burtorch
