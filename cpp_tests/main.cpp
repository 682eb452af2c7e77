// cpp_tests/main.cpp — doctest's main function; compiled once, the tests only include the declarations
// SPDX-License-Identifier: MIT
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
