// cpp_tests/viz_show_test.cpp — programs that are started and not waited for; picture files
// SPDX-License-Identifier: MIT
#include "support.hpp"

#include <burtorch/viz/show.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#if !defined(_WIN32) // setenv and sh

namespace bt = burtorch;
namespace viz = burtorch::viz;

namespace {

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Waits for another process to write a file.
std::string eventualContentOf(const std::string& path) {
  for (int i = 0; i < 3000 && contentOf(path).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return contentOf(path);
}

// An environment variable for the time of a test.
class Setting {
public:
  Setting(const char* name, const std::string& value) : name_(name) {
    if (const char* const old = std::getenv(name)) before_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (before_.empty()) ::unsetenv(name_);
    else ::setenv(name_, before_.c_str(), 1);
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

private:
  const char* name_;
  std::string before_;
};

} // namespace

TEST_CASE("showScript hands the script to Python and returns at once, leaving no child behind") {
  const Setting python("BURTORCH_PYTHON", "/bin/sh"); // a Python that every machine has
  const std::string out = viz::detail::temporaryPath(".txt");
  // It goes on only when it is told to, so returning early is the only way past the next line.
  const std::string go = out + ".go";
  const std::string path =
      bt::showScript("while [ ! -e \"$1.go\" ]; do sleep 0.01; done\n"
                     "echo \"drawn $1\" > \"$1.part\"; mv \"$1.part\" \"$1\"\n",
                     out);
  CHECK(contentOf(path).starts_with("while"));
  CHECK(contentOf(out).empty());
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1); // no child, running or dead
  CHECK(errno == ECHILD);
  viz::detail::writeFile(go, "go");
  CHECK(eventualContentOf(out) == "drawn " + out + "\n");
  for (const std::string& file : {out, go, path}) std::remove(file.c_str());
}

TEST_CASE("a missing Python is an error that names the script") {
  const Setting python("BURTORCH_PYTHON", "/no/such/python");
  const std::string said = errorOf([] { bt::showScript("print(1)\n"); }).what();
  CHECK(said.starts_with("can't start /no/such/python; set BURTORCH_PYTHON"));
  const std::string path = said.substr(said.rfind(' ') + 1);
  CHECK(contentOf(path) == "print(1)\n");
  std::remove(path.c_str());
}

TEST_CASE("a file that can't be written is an error") {
  bt::Tape<double> tape;
  const bt::Value<double> a(tape, 1.0);
  CHECK(std::string(errorOf([&] { bt::saveGraphPicture(a, "/no/such/folder/g.dot"); }).what()) ==
        "can't write /no/such/folder/g.dot");
}

TEST_CASE("without Graphviz the text is written instead") {
  const Setting path("PATH", "/nowhere");
  bt::Tape<double> tape;
  const auto root = sqr(bt::Value<double>(tape, 3.0));
  const std::string wanted = viz::detail::temporaryPath(".svg");
  CHECK(bt::saveGraphPicture(root, wanted) == wanted + ".dot");
  CHECK(contentOf(wanted + ".dot") == buildDotGraph(root));
  CHECK(contentOf(wanted).empty());
  std::remove((wanted + ".dot").c_str());
}

TEST_CASE("the ending names the format") {
  CHECK(viz::detail::extensionOf("a.b/c.svg") == "svg");
  CHECK(viz::detail::extensionOf("a.b/c") == "");
  CHECK(viz::detail::extensionOf("c") == "");
  CHECK(viz::detail::temporaryPath(".x") != viz::detail::temporaryPath(".x"));
}

#else

TEST_CASE("the ending names the format") {
  CHECK(burtorch::viz::detail::extensionOf("a.b\\c.svg") == "svg");
}

#endif
