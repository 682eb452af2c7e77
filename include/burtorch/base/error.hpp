// burtorch/base/error.hpp — how the library fails: an exception, or a handler where there are none
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/config.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

// The same types in files that choose other switches: what one throws, another may catch.
namespace burtorch {

enum class ErrorKind {
  capacity,       // borrowed memory, a fixed reserve, or the index type is exhausted
  staleHandle,    // the node of this handle was rewound or collected away
  emptyHandle,    // a default-constructed Value
  differentTapes, // operands live on two tapes
  badArgument,    // sizes that do not match, a mark that is not of this tape's past, …
  file,           // the system refused to open, read or write one
  badData,        // bytes that are not what they should be: truncated, damaged, of another format
};

class Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

private:
  ErrorKind kind_;
};

} // namespace burtorch

BURTORCH_BEGIN_NAMESPACE

// Called before the program ends when exceptions are disabled. It may log, reset the device, or
// longjmp; if it returns, std::abort follows.
using FailureHandler = void (*)(ErrorKind, const char* what);

namespace detail {
inline std::atomic<FailureHandler> failureHandler{nullptr};
}

// Installs a handler and returns the one before it (nullptr is the default: print to stderr).
inline FailureHandler setFailureHandler(FailureHandler handler) noexcept {
  return detail::failureHandler.exchange(handler);
}

namespace detail {

[[noreturn]] BURTORCH_COLD inline void fail(ErrorKind kind, const std::string& what) {
#if BURTORCH_EXCEPTIONS
  throw Error(kind, what);
#else
  if (FailureHandler handler = failureHandler.load()) {
    handler(kind, what.c_str());
  } else {
    std::fprintf(stderr, "burtorch: %s\n", what.c_str());
  }
  std::abort();
#endif
}

} // namespace detail

BURTORCH_END_NAMESPACE

// A contract of the hot path: checked when BURTORCH_CHECKS is on, free otherwise.
#if BURTORCH_CHECKS
#define BURTORCH_ASSERT(condition, kind, what)                                                     \
  ((condition) ? static_cast<void>(0) : ::burtorch::detail::fail(::burtorch::ErrorKind::kind, what))
#else
#define BURTORCH_ASSERT(condition, kind, what) static_cast<void>(0)
#endif
