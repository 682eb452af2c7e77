// bindings/io.cpp — saving and loading of tapes: ranges, graphs, and files replaced as a whole
// SPDX-License-Identifier: MIT
//
// Where to and from: a path (str, os.PathLike), a binary file object, or, to load from, anything that
// has a buffer (bytes, bytearray, memoryview, an array).
#include "io.hpp"
#include "lock.hpp"
#include "mark.hpp"
#include "register.hpp"
#include "value.hpp"

#include <burtorch/io/range.hpp>
#include <burtorch/io/scalars.hpp>

#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace py = pybind11;

namespace burtorch_python {

namespace {

using Path = std::filesystem::path;

// What the system refused is an OSError, of the kind that open() would raise.
template <class F> auto withFile(const py::object& path, const F& f) {
  // What is no path is refused with the interpreter's own words, which py::cast drops.
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &encoded) == 0) throw py::error_already_set();
  Py_DECREF(encoded);
  try {
    return f(py::cast<Path>(path));
  } catch (const bt::FileError& error) {
#if defined(_WIN32)
    PyErr_SetExcFromWindowsErrWithFilenameObject(PyExc_OSError, error.code(), path.ptr());
#else
    errno = error.code();
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path.ptr());
#endif
    throw py::error_already_set();
  }
}

// The bytes of an object that has some, next to each other, for as long as this lives.
class Buffer {
public:
  explicit Buffer(const py::handle& object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw py::error_already_set();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { PyBuffer_Release(&view_); }
  bt::Bytes bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

private:
  Py_buffer view_;
};

bool isPath(const py::object& object) {
  return py::isinstance<py::str>(object) || py::hasattr(object, "__fspath__");
}

[[noreturn]] void refuse(const py::object& object, const char* wanted) {
  throw py::type_error(std::string(wanted) + ", not " + Py_TYPE(object.ptr())->tp_name);
}

// Hands all of a buffer to a file object. Raw files may take less than they were given, or nothing (None)
// where they would have to wait; what else has a write() and says nothing took all.
void writeTo(const py::object& file, const py::object& buffer) {
  const py::object raw = py::module_::import("io").attr("RawIOBase");
  const py::object all = py::memoryview(buffer).attr("cast")("B");
  const auto size = static_cast<py::ssize_t>(py::len(all));
  for (py::ssize_t done = 0; done < size;) {
    const py::object taken = file.attr("write")(all[py::slice(done, size, 1)]);
    if (taken.is_none() && !py::isinstance(file, raw)) return;
    if (taken.is_none()) {
      const py::tuple why = py::make_tuple(EAGAIN, "the file would have to wait", done);
      PyErr_SetObject(PyExc_BlockingIOError, why.ptr());
      throw py::error_already_set();
    }
    const auto n = PyNumber_AsSsize_t(taken.ptr(), PyExc_OverflowError);
    if (n == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    if (n <= 0 || n > size - done) {
      const std::string what =
          "the file took " + std::to_string(n) + " of " + std::to_string(size - done) + " bytes";
      PyErr_SetString(PyExc_OSError, what.c_str());
      throw py::error_already_set();
    }
    done += n;
  }
}
void writeTo(const py::object& file, bt::Bytes bytes) {
  writeTo(file, py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// Calls f(bytes) for what a file object or a buffer holds.
template <class F> auto withContent(const py::object& source, const F& f) {
  if (py::hasattr(source, "read")) {
    const py::object content = source.attr("read")();
    if (!PyObject_CheckBuffer(content.ptr())) refuse(content, "read() must give bytes");
    return f(Buffer(content).bytes());
  }
  if (!PyObject_CheckBuffer(source.ptr()))
    refuse(source, "a path, a binary file or bytes are needed");
  return f(Buffer(source).bytes());
}

// ---- ranges ----------------------------------------------------------------------------------------

template <class F> auto withParts(const std::string& what, const F& f) {
  using bt::Parts;
  static constexpr std::pair<const char*, Parts> parts[] = {
      {"values", Parts::values}, {"grads", Parts::gradients}, {"both", Parts::both}};
  switch (named("part", what, parts)) {
  case Parts::values:
    return f(std::integral_constant<Parts, Parts::values>{});
  case Parts::gradients:
    return f(std::integral_constant<Parts, Parts::gradients>{});
  case Parts::both:
    return f(std::integral_constant<Parts, Parts::both>{});
  }
  BURTORCH_UNREACHABLE();
}

// Indices as Python counts them: from the end if negative.
std::size_t position(py::ssize_t i, std::size_t size) {
  const auto n = static_cast<py::ssize_t>(size);
  if (i < -n || i > n)
    throw py::index_error("node " + std::to_string(i) + " of a tape that holds " +
                          std::to_string(size));
  return static_cast<std::size_t>(i < 0 ? i + n : i);
}

void save(AnyTape& any, const py::object& to, py::ssize_t first, std::optional<py::ssize_t> last,
          const std::string& what, bool durable, bool inPlace) {
  if (durable && inPlace)
    throw py::value_error("durable=True replaces the file, in_place=True writes into it: not both");
  const auto writing = inPlace   ? bt::Writing::inPlace
                       : durable ? bt::Writing::durable
                                 : bt::Writing::atomic;
  visit(any, [&]<class T>(TapeOf<T>& t) {
    demandIdle(t);
    const std::size_t size = t.tape.size(), from = position(first, size);
    const std::size_t end = last ? position(*last, size) : size;
    withParts(what, [&]<bt::Parts parts>(std::integral_constant<bt::Parts, parts>) {
      if (isPath(to))
        return withFile(to, [&](const Path& path) {
          unlockedIfLong(t, size, [&] { bt::saveRange<parts>(t.tape, from, end, path, writing); });
        });
      if (!py::hasattr(to, "write")) refuse(to, "a path or a binary file is needed");
      writeTo(to, bt::saveRange<parts>(t.tape, from, end));
    });
  });
}

std::size_t load(AnyTape& any, const py::object& from, py::ssize_t first, const std::string& what) {
  return visit(any, [&]<class T>(TapeOf<T>& t) {
    demandIdle(t);
    const std::size_t size = t.tape.size(), at = position(first, size);
    return withParts(what, [&]<bt::Parts parts>(std::integral_constant<bt::Parts, parts>) {
      if (isPath(from))
        return withFile(from, [&](const Path& path) {
          return unlockedIfLong(t, size, [&] { return bt::loadRange<parts>(t.tape, at, path); });
        });
      return withContent(from,
                         [&](bt::Bytes bytes) { return bt::loadRange<parts>(t.tape, at, bytes); });
    });
  });
}

// ---- graphs ----------------------------------------------------------------------------------------

template <class T> bt::KnownBlocks<T, SharedMemory> blocksOf() {
  if constexpr (!std::floating_point<T>) return {};
  else return knownBlocks<T>();
}

void saveGraph(AnyTape& any, const py::object& to, bool durable, const std::vector<Mark*>& marks) {
  visit(any, [&]<class T>(TapeOf<T>& t) {
    demandIdle(t);
    std::vector<Mark::Position<T>> positions;
    for (const Mark* const mark : marks) positions.push_back(mark->on(t));
    std::ranges::stable_sort(positions, {}, &Mark::Position<T>::nodes);
    const bt::GraphOptions<T, SharedMemory> options{
        blocksOf<T>(), positions, durable ? bt::Writing::durable : bt::Writing::atomic};
    if (isPath(to))
      return withFile(to, [&](const Path& path) {
        unlockedIfLong(t, t.tape.size(), [&] { bt::saveGraph(t.tape, path, options); });
      });
    if (!py::hasattr(to, "write")) refuse(to, "a path or a binary file is needed");
    writeTo(to, bt::saveGraph(t.tape, options));
  });
}

// The tape, or a tuple of it and the marks that were stored.
py::object loadGraphFrom(bt::Bytes bytes, bool withMarks) {
  const std::string dtype = bt::graphScalar(bytes);
#define BURTORCH_DTYPE(name, type)                                                                 \
  if (dtype == #name) {                                                                            \
    Ref<AnyTape> any(new TapeOf<type>(DType::name, 0));                                            \
    auto& t = static_cast<TapeOf<type>&>(*any);                                                    \
    const auto loaded = bt::loadGraph(t.tape, bytes, blocksOf<type>());                            \
    ++t.marks; /* no Value names these nodes yet: they stay all the same, unless asked */          \
    if (!withMarks) return py::cast(any);                                                          \
    py::list marks;                                                                                \
    for (const auto& mark : loaded.marks) marks.append(std::make_unique<Mark>(t, mark));           \
    return py::make_tuple(any, marks);                                                             \
  }
  BURTORCH_DTYPES(BURTORCH_DTYPE)
#undef BURTORCH_DTYPE
  throw py::value_error("this graph can't be loaded: it holds '" + dtype +
                        "', of which there are no tapes");
}

py::object loadGraph(const py::object& from, bool withMarks) {
  if (!isPath(from))
    return withContent(from, [&](bt::Bytes bytes) { return loadGraphFrom(bytes, withMarks); });
  const auto content = withFile(from, [](const Path& path) {
    const Unlocked unlocked;
    return bt::readGraph(path);
  });
  return loadGraphFrom(content, withMarks);
}

// The Value of a node, by its index or by its name.
py::object value(AnyTape& any, const std::variant<py::ssize_t, std::string>& which) {
  return visit(any, [&]<class T>(TapeOf<T>& t) {
    demandIdle(t);
    const std::size_t size = t.tape.size();
    std::size_t node = size;
    if (const auto* const name = std::get_if<std::string>(&which)) {
      for (node = 0; node < size && t.tape.label(node) != *name;) ++node;
      if (node == size) throw py::key_error("no node of this tape is called '" + *name + "'");
    } else {
      node = position(std::get<py::ssize_t>(which), size);
      if (node == size)
        throw py::index_error("node " + std::to_string(node) + " of a tape that holds " +
                              std::to_string(size));
    }
    return py::reinterpret_steal<py::object>(newValue(t, TapeOf<T>::Value::at(t.tape, node)));
  });
}

// ---- files -----------------------------------------------------------------------------------------

void replaceFile(const py::object& to, const std::vector<py::object>& parts, bool durable) {
  std::list<Buffer> buffers;
  std::vector<bt::Bytes> all;
  for (const auto& part : parts) all.push_back(buffers.emplace_back(part).bytes());
  withFile(to, [&](const Path& path) {
    const Unlocked unlocked;
    bt::writeFile(path, std::span<const bt::Bytes>(all),
                  durable ? bt::Writing::durable : bt::Writing::atomic);
  });
}

void writeParts(const py::object& file, const std::vector<py::object>& parts) {
  for (const auto& part : parts) writeTo(file, part);
}

} // namespace

void registerIo(py::module_& module) {
  using TapeClass = py::class_<AnyTape, Ref<AnyTape>>;
  auto tape = py::reinterpret_borrow<TapeClass>(module.attr("Tape"));
  tape.def("save", &save, py::arg("path"), py::arg("first") = 0, py::arg("last") = py::none(),
           py::arg("what") = "values", py::arg("durable") = false, py::arg("in_place") = false,
           "Write the values of nodes [first, last) as the bytes of an array, and nothing else; "
           "what='grads'\nor 'both' (values, then gradients) likewise. The file is replaced as a "
           "whole: where that fails, the\nold one stays. durable=True also waits for the disk. "
           "in_place=True writes into the old file, which is\nfaster; a full disk then destroys "
           "it.")
      .def("load", &load, py::arg("path"), py::arg("first") = 0, py::arg("what") = "values",
           "Set as many nodes as there are numbers, from first on; return how many.")
      .def("save_graph", &saveGraph, py::arg("path"), py::arg("durable") = true,
           py::arg("marks") = py::tuple(),
           "Write everything on the tape, and these marks, to be read by load_graph, here or in "
           "C++.")
      .def("value", &value, py::arg("which"), "The Value of a node, by its index or its name.");
  module.def(
      "load_graph", &loadGraph, py::arg("path"), py::arg("marks") = false,
      "A tape with everything that save_graph wrote. It does not compact itself; collect() does.\n"
      "marks=True: a tuple of the tape and the list of the marks stored with it, oldest first.");
  auto io = module.def_submodule("_io", "What burtorch.io is made of.");
  io.def("replace_file", &replaceFile, py::arg("path"), py::arg("parts"), py::arg("durable") = true,
         "Write a file so that at any moment there is the old one or the new one, whole.");
  io.def("write_to", &writeParts, py::arg("file"), py::arg("parts"),
         "Write all of the parts to a file object.");
}

} // namespace burtorch_python
