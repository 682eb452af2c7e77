// burtorch/base/config.hpp — version, and the compile-time switches, each documented where it is defined
// SPDX-License-Identifier: MIT
//
// A switch is a macro that is 0 or 1. Define it before the first burtorch include (or on the
// compiler's command line) the same way in every translation unit of a program. Switches that
// change the layout of a type also change the name of the inline namespace below, so that
// disagreeing units fail to link instead of corrupting each other.
#pragma once

#define BURTORCH_VERSION_MAJOR 0
#define BURTORCH_VERSION_MINOR 1
#define BURTORCH_VERSION_PATCH 0

// Labels of nodes (`setLabel`). 0 removes them entirely: no byte is stored, and calls to setLabel
// still compile and do nothing.
#ifndef BURTORCH_LABELS
#define BURTORCH_LABELS 1
#endif

// Contract checks on the hot path: handles that outlived a rewind, operands from two tapes, empty
// handles. On in Debug builds. They cost four bytes per node and per handle and a few compares per
// operation.
#ifndef BURTORCH_CHECKS
#ifdef NDEBUG
#define BURTORCH_CHECKS 0
#else
#define BURTORCH_CHECKS 1
#endif
#endif

// Errors are exceptions. 0 (the default under -fno-exceptions) calls the installed failure handler
// instead and then ends the program; see error.hpp.
#ifndef BURTORCH_EXCEPTIONS
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define BURTORCH_EXCEPTIONS 1
#else
#define BURTORCH_EXCEPTIONS 0
#endif
#endif

#if BURTORCH_LABELS && BURTORCH_CHECKS
#define BURTORCH_LAYOUT layout_labels_checks
#elif BURTORCH_LABELS
#define BURTORCH_LAYOUT layout_labels
#elif BURTORCH_CHECKS
#define BURTORCH_LAYOUT layout_checks
#else
#define BURTORCH_LAYOUT layout_bare
#endif

#define BURTORCH_BEGIN_NAMESPACE                                                                   \
  namespace burtorch {                                                                             \
  inline namespace BURTORCH_LAYOUT {
#define BURTORCH_END_NAMESPACE                                                                     \
  }                                                                                                \
  }

// The append and the sweep are worth inlining beyond what a compiler's size heuristics allow (but
// not in builds that do not optimize or that instrument every access: there it would only take
// minutes); the paths taken when memory runs out are worth keeping out of the way.
#if defined(__GNUC__)
#if defined(BURTORCH_INSTRUMENTED)
// said by the program
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BURTORCH_INSTRUMENTED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BURTORCH_INSTRUMENTED 1
#endif
#if defined(__OPTIMIZE__) && !defined(BURTORCH_INSTRUMENTED)
#define BURTORCH_INLINE inline __attribute__((always_inline))
#define BURTORCH_INLINE_LAMBDA __attribute__((always_inline))
#else
#define BURTORCH_INLINE inline
#define BURTORCH_INLINE_LAMBDA
#endif
#define BURTORCH_NOINLINE __attribute__((noinline))
#define BURTORCH_COLD __attribute__((noinline, cold))
#define BURTORCH_UNREACHABLE() __builtin_unreachable()
#define BURTORCH_RESTRICT __restrict
#elif defined(_MSC_VER)
#define BURTORCH_INLINE __forceinline
#define BURTORCH_INLINE_LAMBDA
#define BURTORCH_NOINLINE __declspec(noinline)
#define BURTORCH_COLD __declspec(noinline)
#define BURTORCH_UNREACHABLE() __assume(0)
#define BURTORCH_RESTRICT __restrict
#else
#define BURTORCH_INLINE inline
#define BURTORCH_INLINE_LAMBDA
#define BURTORCH_NOINLINE
#define BURTORCH_COLD
#define BURTORCH_UNREACHABLE() ((void)0)
#define BURTORCH_RESTRICT
#endif
