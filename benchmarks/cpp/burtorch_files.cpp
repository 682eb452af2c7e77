// benchmarks/cpp/burtorch_files.cpp — seven activations to a file and back
// SPDX-License-Identifier: MIT
#include "loop.hpp"

#if __has_include(<burtorch/io/range.hpp>)
#include <burtorch/burtorch.hpp>
#include <burtorch/io/range.hpp>

namespace {

namespace bt = burtorch;

loop::Run files(const loop::Parameters& parameters, bool isSave) {
  const auto saved = std::make_shared<bt::Tape<double>>();
  const auto loaded = std::make_shared<bt::Tape<double>>(); // zeros, until the file is read
  for (const double x : {-4.0, 2.0, -1.0, 6.0, -7.0, 49.0, 24.5 + 10.0 / 49}) {
    saved->leaf(x);
    loaded->leaf(0);
  }
  const std::filesystem::path path = parameters.text("path");
  if (!isSave) bt::saveRange(*saved, 0, 7, path);
  return {[=](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
              if (isSave) bt::saveRange(*saved, 0, 7, path);
              else bt::loadRange(*loaded, 0, 7, path);
          },
          [=] {
            if (isSave) bt::loadRange(*loaded, 0, 7, path);
            return loop::Outputs(loaded->values().begin(), loaded->values().end());
          }};
}

} // namespace

int main(int argc, char** argv) {
  return loop::main(argc, argv,
                    {{"save", "C++", [](const auto& p) { return files(p, true); }},
                     {"load", "C++", [](const auto& p) { return files(p, false); }}});
}
#else
int main(int argc, char** argv) { return loop::main(argc, argv, {}); }
#endif
