// benchmarks/cpp/burtorch_files.cpp — seven activations to a file and back; the parameters of a large model
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

constexpr std::size_t large = 1'079'003; // LARGE of works.py

std::shared_ptr<bt::Tape<float>> model() {
  const auto tape = std::make_shared<bt::Tape<float>>();
  tape->leaves(large);
  return tape;
}

loop::Run saveModel(const loop::Parameters& parameters, bt::Writing writing) {
  const std::filesystem::path path = parameters.text("path");
  return {[=, tape = model()](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) bt::saveRange(*tape, 0, large, path, writing);
          },
          [=] { return loop::Outputs{static_cast<double>(std::filesystem::file_size(path) / 4)}; }};
}

#if !defined(_WIN32)
// What nobody who replaces a file can do without.
loop::Run writeAndRename(const loop::Parameters& parameters) {
  const std::string path = parameters.text("path"), beside = path + ".tmp";
  return {[=, tape = model()](std::size_t count) {
            const bt::Bytes content = std::as_bytes(tape->values());
            for (std::size_t i = 0; i < count; ++i) {
              const int file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
              if (::write(file, content.data(), content.size()) < 0) std::abort();
              ::close(file);
              std::filesystem::rename(beside, path);
            }
          },
          [=] { return loop::Outputs{static_cast<double>(std::filesystem::file_size(path) / 4)}; }};
}
#endif

loop::Run loadModel(const loop::Parameters& parameters, bool isMapped) {
  const std::filesystem::path path = parameters.text("path");
  const auto tape = model();
  bt::saveRange(*tape, 0, large, path, bt::Writing::atomic);
  return {[=](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
              if (isMapped) { // and looks at every page
                const auto range = bt::mapRange<float>(path);
                for (std::size_t k = 0; k < large; k += 1024)
                  loop::sink = static_cast<double>(range.numbers()[k]);
              } else bt::loadRange(*tape, 0, large, path);
          },
          [=] { return loop::Outputs{static_cast<double>(large)}; }};
}

} // namespace

int main(int argc, char** argv) {
  using loop::Parameters;
  return loop::main(argc, argv, {
    {"save", "C++", [](const Parameters& p) { return files(p, true); }},
        {"load", "C++", [](const Parameters& p) { return files(p, false); }},
#if !defined(_WIN32)
        {"save model", "write and rename", writeAndRename},
#endif
        {"save model", "atomic",
         [](const Parameters& p) { return saveModel(p, bt::Writing::atomic); }},
        {"save model", "durable",
         [](const Parameters& p) { return saveModel(p, bt::Writing::durable); }},
        {"load model", "mapped", [](const Parameters& p) { return loadModel(p, true); }},
        {"load model", "read", [](const Parameters& p) { return loadModel(p, false); }},
  });
}
#else
int main(int argc, char** argv) { return loop::main(argc, argv, {}); }
#endif
