// burtorch/viz/show.hpp — shows a script or a graph while the program goes on, or stands at a breakpoint
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/error.hpp>
#include <burtorch/viz/dot.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#if defined(_WIN32)
#include <process.h>
#else
#include <cerrno>
#include <cstring>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ; // NOLINT: POSIX leaves its declaration to the program
#endif

BURTORCH_BEGIN_NAMESPACE

namespace viz {

// Whether a started program is waited for.
enum class Wait { untilItEnds, no };

namespace detail {

// A path in the folder for temporary files that no other call and no other process gives out.
inline std::string temporaryPath(std::string_view extension) {
  static std::atomic<unsigned> count{0};
#if defined(_WIN32)
  const char* const folder = std::getenv("TEMP");
  const long process = ::_getpid();
#else
  const char* const folder = std::getenv("TMPDIR");
  const long process = static_cast<long>(::getpid());
#endif
  return std::string(folder != nullptr ? folder : "/tmp") + "/burtorch-" + std::to_string(process) +
         "-" + std::to_string(count.fetch_add(1)) + std::string(extension);
}

inline void writeFile(const std::string& path, std::string_view text) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) good = std::fclose(file) == 0 && good;
  if (!good) burtorch::detail::fail(ErrorKind::badArgument, "can't write " + path);
}

// Starts a program found on the path; false if there is none of that name, or if it was waited for and
// failed. One that is not waited for belongs to no one: when it ends, no zombie is left.
inline bool startProgram(const std::vector<std::string>& words, Wait wait) {
#if defined(_WIN32)
  std::vector<std::string> quoted; // the C runtime joins the words with spaces
  for (const std::string& word : words) quoted.push_back('"' + word + '"');
  std::vector<const char*> arguments;
  for (const std::string& word : quoted) arguments.push_back(word.c_str());
  arguments.push_back(nullptr);
  const int mode = wait == Wait::no ? _P_DETACH : _P_WAIT;
  const auto status = ::_spawnvp(mode, words[0].c_str(), arguments.data());
  return wait == Wait::no ? status != -1 : status == 0;
#else
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto spawn = [&](pid_t& child) {
    return ::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0;
  };
  const auto succeeds = [](pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) == -1)
      if (errno != EINTR) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  pid_t child = 0;
  if (wait == Wait::untilItEnds) return spawn(child) && succeeds(child);
  // A child that starts it and ends at once: who is left without a parent is init's.
  const pid_t between = ::fork();
  if (between == 0) {
    ::setsid();
    ::_exit(spawn(child) ? 0 : 1);
  }
  return between != -1 && succeeds(between);
#endif
}

inline std::string extensionOf(const std::string& path) {
  const std::size_t dot = path.find_last_of("./\\");
  return dot == std::string::npos || path[dot] != '.' ? "" : path.substr(dot + 1);
}

} // namespace detail

} // namespace viz

// Writes a script to a temporary file and runs Python on it without waiting: a window opens, or, if a
// picture file is named, that appears. Returns the script's path. The environment variable
// BURTORCH_PYTHON says which Python; it needs Matplotlib.
inline std::string showScript(std::string_view script, const std::string& picture = "") {
#if defined(_WIN32)
  const char* python = "python";
#else
  const char* python = "python3";
#endif
  if (const char* const chosen = std::getenv("BURTORCH_PYTHON")) python = chosen;
  std::string path = viz::detail::temporaryPath(".py");
  viz::detail::writeFile(path, script);
  std::vector<std::string> words{python, path};
  if (!picture.empty()) words.push_back(picture);
  if (!viz::detail::startProgram(words, viz::Wait::no))
    detail::fail(ErrorKind::badArgument,
                 std::string("can't start ") + python +
                     "; set BURTORCH_PYTHON, or run the script yourself: " + path);
  return path;
}

// Writes the graph of a root as a picture in the format that the path's ending names (svg, png, pdf,
// …), or as DOT text if that is "dot" or if Graphviz is not installed. Returns the path written to.
template <class T, class... O>
std::string saveGraphPicture(const Value<T, O...>& root, const std::string& path,
                             std::string_view title = "", const viz::DotOptions& options = {}) {
  const std::string format = viz::detail::extensionOf(path);
  std::string text = format == "dot" ? path : path + ".dot";
  viz::detail::writeFile(text, buildDotGraph(root, title, options));
  if (text == path ||
      !viz::detail::startProgram({"dot", "-T" + format, text, "-o", path}, viz::Wait::untilItEnds))
    return text;
  std::remove(text.c_str());
  return path;
}

BURTORCH_END_NAMESPACE
