// burtorch/io/graph.hpp — saveGraph, loadGraph: everything on a tape, in a file or in memory
// SPDX-License-Identifier: MIT
//
// Nodes with values and gradients, the operations that made them, labels, marks. The format is described in
// docs/formats.md; it does not depend on the machine, on the index type, or on where an operation stands
// in the table: operations are stored by name, operands as distances from the result.
//
//   saveGraph(tape, "graph.btg");
//   loadGraph(other, "graph.btg");               appends to what is there
//
// Blocks have code that a program must name to have it. Graphs with blocks are saved and loaded with a list of
// those that may occur; everyBlock in io/blocks.hpp lists them all:
//
//   saveGraph(tape, "graph.btg", {.blocks = everyBlock<double>()});
//   loadGraph(other, "graph.btg", everyBlock<double>());
//
// Every field is checked against what the file has shown before, so that no file makes a tape that can't be
// run. If anything is wrong the tape is left as it was.
#pragma once

#include <burtorch/block/describe.hpp>
#include <burtorch/io/checksum.hpp>
#include <burtorch/io/file.hpp>
#include <burtorch/io/stream.hpp>
#include <burtorch/op/record.hpp>
#include <burtorch/tape/rebuild.hpp>
#include <burtorch/tape/tape.hpp>
#include <burtorch/view.hpp>
#include <burtorch/base/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

BURTORCH_BEGIN_NAMESPACE

namespace detail {

// What a record is, in files: its Layout, or one of these. The numbers are part of the format.
enum class Kind : std::uint8_t {
  block = static_cast<unsigned>(Layout::block),
  map = 11,        // a block: a Unary of every element
  mapNodes = 12,   // a Binary of every element
  mapNumber = 13,  // with a number on the right
  mapNumberOn = 14 // on the left
};
constexpr Kind kindOf(Layout layout) { return static_cast<Kind>(layout); }
constexpr Kind kindOf(Code code) { return kindOf(op::layoutOf(code)); }

} // namespace detail

// A kind of block that files may contain: how it is called there and how it is recorded anew.
template <class T, class... O> struct KnownBlock {
  using Index = typename Tape<T, O...>::Index;
  detail::Kind kind;
  const char* name;
  const BlockMethods<T, Index>* methods;
  // How many of its parameters are worth storing; the others are space to work in.
  std::size_t (*parameters)(const BlockFrame<T, Index>&);
  void (*record)(const BlockParts<T, O...>&);
};
template <class T, class... O> using KnownBlocks = std::span<const KnownBlock<T, O...>>;

template <class T, class... O> struct GraphOptions {
  KnownBlocks<T, O...> blocks = {};
  std::span<const typename Tape<T, O...>::Mark> marks = {}; // to be stored too, oldest first
  Writing writing = Writing::durable;
};

// Where a loaded graph is on its tape.
template <class T, class... O> struct LoadedGraph {
  std::size_t first = 0, count = 0; // nodes
  std::vector<typename Tape<T, O...>::Mark> marks;
};

namespace detail {

struct GraphFile {
  static constexpr std::array<std::uint8_t, 8> magic{0x89, 'B', 'T', 'G', '\r', '\n', 0x1a, '\n'};
  static constexpr std::uint32_t version = 1;
  static constexpr std::size_t nameBytes = 16, headBytes = 64;
  static constexpr std::size_t checkedFrom = 16; // the checksum is of what follows it
};

// What is not UTF-8 becomes U+FFFD, as wherever labels are written.
inline std::string asUtf8(std::string_view label) {
  return escaped(label, [](const auto&...) { return false; });
}

// ---- saving --------------------------------------------------------------------------------------

template <class T, class... O> class GraphWriter {
public:
  using TapeType = Tape<T, O...>;
  using Index = typename TapeType::Index;
  using Record = typename TapeType::Record;

  // The tape is not changed; a frame of a block is only to be had from one that could be.
  GraphWriter(const TapeType& tape, const GraphOptions<T, O...>& options)
      : tape_(const_cast<TapeType&>(tape)), options_(options) {}

  std::vector<std::byte> write() {
    for (const Record& record : tape_.records()) writeRecord(record);
    const auto values = std::as_const(tape_).values(), grads = std::as_const(tape_).grads();
    ByteWriter all;
    all.bytes().reserve(GraphFile::headBytes + 2 * values.size_bytes() + records_.bytes().size());
    writeHead(all);
    all.template numbers<T>(values);
    all.template numbers<T>(grads);
    all.integer(entries_.size());
    for (const auto& [kind, name] : entries_) {
      all.byte(static_cast<std::uint8_t>(kind));
      all.text(name);
    }
    writeMarks(all);
    all.raw(records_.bytes());
    writeLabels(all);
    return finished(all);
  }

private:
  void writeHead(ByteWriter& out) const {
    out.raw(std::as_bytes(std::span(GraphFile::magic)));
    out.fixed(GraphFile::version);
    out.fixed(std::uint32_t{0}); // checksum and size are known at the end
    out.fixed(std::uint64_t{0});
    out.fixed(std::uint64_t{tape_.size()});
    out.fixed(std::uint64_t{tape_.records().size()});
    out.fixed(std::uint64_t{0}); // for later versions
    std::array<char, GraphFile::nameBytes> name{};
    const std::string_view dtype = Stored<T>::name;
    static_assert(std::string_view(Stored<T>::name).size() <= GraphFile::nameBytes);
    std::copy(dtype.begin(), dtype.end(), name.begin());
    out.raw(std::as_bytes(std::span(name)));
  }

  static std::vector<std::byte> finished(ByteWriter& out) {
    std::vector<std::byte> bytes = std::move(out.bytes());
    const auto put = [&](std::size_t at, auto x) {
      ByteWriter w;
      w.fixed(x);
      std::copy(w.bytes().begin(), w.bytes().end(),
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
    };
    put(16, static_cast<std::uint64_t>(bytes.size()));
    put(12, crc32(Bytes(bytes).subspan(GraphFile::checkedFrom)));
    return bytes;
  }

  void writeMarks(ByteWriter& out) const {
    if (options_.marks.size() > tape_.size() + 1)
      fail(ErrorKind::badArgument, "saveGraph: more marks than there are places for them");
    out.integer(options_.marks.size());
    std::size_t before = 0;
    for (const auto& mark : options_.marks) {
      if (mark.nodes() < before || mark.nodes() > tape_.size())
        fail(ErrorKind::badArgument,
             "saveGraph: marks are given oldest first, and lie on the tape");
      out.integer(mark.nodes() - before);
      before = mark.nodes();
    }
  }

  void writeLabels(ByteWriter& out) const {
    ByteWriter labels;
    std::size_t count = 0, before = 0;
    for (std::size_t i = 0; i < tape_.size(); ++i) {
      const std::string label = tape_.label(i);
      if (label.empty()) continue;
      labels.integer(i - before);
      labels.text(asUtf8(label));
      before = i;
      ++count;
    }
    out.integer(count);
    out.raw(labels.bytes());
  }

  void writeRecord(const Record& record) {
    const std::size_t node = record.firstResult();
    records_.integer(node - next_); // leaves
    const auto distance = [&](std::size_t operand) { records_.integer(node - operand); };
    if (record.isBlock()) {
      writeBlock(record, distance);
    } else {
      const char* const name = namesOf(record.operation()).function;
      records_.integer(entry(record.code(), kindOf(record.code()), name));
      tape_.eachField(record, Write<decltype(distance)>{{}, *this, distance});
    }
    next_ = std::size_t{record.result} + 1;
  }

  // Fields as they stand in files: a count where there are many, distances, numbers. Of no nodes nothing.
  template <class Distance> struct Write : EachField {
    GraphWriter& writer;
    const Distance& distance;
    void many(std::size_t n) const { writer.records_.integer(n); }
    void node(std::size_t i) const { distance(i); }
    void run(std::size_t first, std::size_t n) const {
      if (n != 0) distance(first);
    }
    void numbers(std::size_t place, std::size_t n) const {
      writer.records_.template numbers<T>(
          std::as_const(writer.tape_).constants().subspan(place, n));
    }
  };

  template <class Distance> void writeBlock(const Record& record, const Distance& distance) {
    const auto frame = tape_.frame(record);
    const auto& methods = frame.description.methods();
    const auto known = std::find_if(options_.blocks.begin(), options_.blocks.end(),
                                    [&](const auto& each) { return each.methods == &methods; });
    if (known == options_.blocks.end())
      fail(ErrorKind::badArgument,
           std::string("saveGraph: the block ") + methods.name +
               " is not among those given; everyBlock in io/blocks.hpp lists all");
    const auto position = static_cast<std::size_t>(known - options_.blocks.begin());
    records_.integer(entry(blockCode + 1 + position, known->kind, known->name));
    records_.integer(frame.count);
    records_.integer(frame.views());
    tape_.forEachView(record, [&](std::size_t first, std::size_t rows, std::size_t cols) {
      const std::size_t node = record.firstResult();
      distance(rows * cols == 0 ? node : first); // no nodes are nowhere
      records_.integer(rows);
      records_.integer(cols);
    });
    const std::size_t n = known->parameters(frame);
    records_.integer(n);
    for (std::size_t i = 0; i < n; ++i) records_.integer(frame.parameter(i));
    records_.integer(frame.description.constants());
    records_.template numbers<T>(std::span<const T>(frame.kept, frame.description.constants()));
  }

  // The place of an operation in the file's own list.
  std::size_t entry(std::size_t key, Kind kind, const char* name) {
    if (key >= entryOf_.size()) entryOf_.resize(key + 1, 0);
    if (entryOf_[key] == 0) {
      entries_.emplace_back(kind, name);
      entryOf_[key] = entries_.size();
    }
    return entryOf_[key] - 1;
  }

  TapeType& tape_;
  const GraphOptions<T, O...>& options_;
  ByteWriter records_;
  std::size_t next_ = 0;
  std::vector<std::size_t> entryOf_; // plus 1
  std::vector<std::pair<Kind, const char*>> entries_;
};

// ---- loading -------------------------------------------------------------------------------------

// What the head says, once it is known to be true of the bytes.
struct GraphHead {
  std::size_t nodes, records;
  std::string dtype;
};

// What is known of a graph from its first bytes.
struct GraphStart {
  std::uint32_t checksum;
  std::uint64_t size;
};

inline GraphStart readGraphStart(ByteReader& in) {
  const Bytes magic = std::as_bytes(std::span(GraphFile::magic));
  if (in.left() < magic.size() || !std::ranges::equal(in.raw(magic.size()), magic))
    in.fail("it does not begin as graphs do");
  const auto version = in.fixed<std::uint32_t>();
  if (version == GraphFile::version << 24) in.fail("its bytes are in the wrong order");
  if (version != GraphFile::version)
    in.fail("it is of version " + std::to_string(version) + ", known is " +
            std::to_string(GraphFile::version));
  const auto checksum = in.fixed<std::uint32_t>();
  return {checksum, in.fixed<std::uint64_t>()};
}

inline GraphHead readGraphHead(Bytes bytes) {
  ByteReader in(bytes);
  const auto [checksum, size] = readGraphStart(in);
  if (size != bytes.size())
    in.fail("it should have " + std::to_string(size) + " bytes and has " +
            std::to_string(bytes.size()));
  if (checksum != crc32(bytes.subspan(GraphFile::checkedFrom)))
    in.fail("it is damaged: the checksum is wrong");
  const auto nodes = in.fixed<std::uint64_t>(), records = in.fixed<std::uint64_t>();
  if (in.fixed<std::uint64_t>() != 0) in.fail("it uses what only later versions know");
  const Bytes name = in.raw(GraphFile::nameBytes);
  const auto end = std::find(name.begin(), name.end(), std::byte{0});
  std::string dtype;
  for (auto c = name.begin(); c != end; ++c) dtype += static_cast<char>(*c);
  // A node has at least a byte of value and one of gradient; a record has at least one node.
  if (nodes > in.left() / 2 || records > nodes)
    in.fail(std::to_string(nodes) + " nodes and " + std::to_string(records) +
            " records can't be in it");
  return {static_cast<std::size_t>(nodes), static_cast<std::size_t>(records), std::move(dtype)};
}

template <class T, class... O> class GraphReader {
public:
  using TapeType = Tape<T, O...>;
  using Index = typename TapeType::Index;

  GraphReader(TapeType& tape, Bytes bytes, KnownBlocks<T, O...> blocks)
      : tape_(tape), blocks_(blocks), head_(readGraphHead(bytes)), base_(tape.size()),
        in_(bytes, GraphFile::headBytes) {
    if (head_.dtype != Stored<T>::name)
      in_.fail("it holds " + head_.dtype + ", the tape " + Stored<T>::name);
    if (head_.nodes > in_.left() / (2 * sizeof(T)))
      in_.fail(std::to_string(head_.nodes) + " nodes can't be in it");
    values_ = in_.raw(head_.nodes * sizeof(T));
    grads_ = in_.raw(head_.nodes * sizeof(T));
  }

  LoadedGraph<T, O...> read() {
    Undo undo(tape_);
    readEntries();
    readMarks();
    tape_.makeRoomFor(tape_.used() + Extent{head_.nodes, head_.records, 0, 0});
    for (std::size_t r = 0; r < head_.records; ++r) readRecord();
    addLeaves(head_.nodes - next_);
    takeMarks();
    if (head_.nodes != 0) fromFileBytes(grads_, tape_.grads().subspan(base_, head_.nodes));
    readLabels();
    if (in_.left() != 0) in_.fail(std::to_string(in_.left()) + " bytes are left over");
    undo.forget();
    return {base_, head_.nodes, std::move(taken_)};
  }

private:
  class Undo { // everything that was appended, unless told to forget
  public:
    explicit Undo(TapeType& tape) : tape_(&tape), start_(tape.mark()) {}
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo() {
      if (tape_ != nullptr) tape_->rewind(start_);
    }
    void forget() { tape_ = nullptr; }

  private:
    TapeType* tape_;
    typename TapeType::Mark start_;
  };

  struct Entry { // one or the other
    Code code = blockCode;
    const KnownBlock<T, O...>* block = nullptr;
  };

  void readEntries() {
    const std::size_t n = in_.count(2);
    entries_.reserve(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto kind = static_cast<Kind>(in_.byte());
      const std::string_view name = in_.text();
      entries_.push_back(kind < Kind::block ? operationOf(kind, name) : blockOf(kind, name));
    }
  }
  Entry operationOf(Kind kind, std::string_view name) const {
    std::optional<Code> found;
#define BURTORCH_FIND(Name, function)                                                              \
  if (name == #function)                                                                           \
    for (unsigned form = 0; form < op::formsOf<op::Name>(); ++form)                                \
      if (const Code code = codeOf(Op::e##Name, static_cast<Form>(form)); kindOf(code) == kind)    \
        found = code;
    BURTORCH_OPERATIONS(BURTORCH_FIND)
#undef BURTORCH_FIND
    if (!found) in_.fail("there is no such operation: " + quoted(kind, name));
    return {*found, nullptr};
  }
  Entry blockOf(Kind kind, std::string_view name) const {
    for (const auto& each : blocks_)
      if (each.kind == kind && name == each.name) return {blockCode, &each};
    in_.fail("there is no such block, or it is not among those given to loadGraph: " +
             quoted(kind, name));
  }
  static std::string quoted(Kind kind, std::string_view name) {
    std::string text = "'";
    for (const char c : name.substr(0, 40)) text += c >= ' ' && c < 127 ? c : '?';
    return text.append("' of kind ").append(std::to_string(static_cast<unsigned>(kind)));
  }

  void readMarks() {
    const std::size_t n = in_.count(1);
    if (n > head_.nodes + 1) in_.fail("more marks than there are places for them");
    marks_.reserve(n);
    taken_.reserve(n);
    std::size_t at = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t more = in_.integer();
      if (more > head_.nodes - at) in_.fail("a mark lies behind the end");
      marks_.push_back(at += static_cast<std::size_t>(more));
    }
  }
  void takeMarks() {
    for (; taken_.size() < marks_.size() && marks_[taken_.size()] <= next_;) {
      if (marks_[taken_.size()] != next_) in_.fail("a mark amid the results of a block");
      taken_.push_back(tape_.mark());
    }
  }

  void readLabels() {
    const std::size_t n = in_.count(2);
    std::size_t at = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t more = in_.integer();
      if (head_.nodes == 0 || more > head_.nodes - 1 - at) in_.fail("a label of no node");
      at += static_cast<std::size_t>(more);
      const std::string_view label = in_.text();
      if (asUtf8(label) != label) in_.fail("a label that is no UTF-8");
      tape_.setLabel(base_ + at, std::string(label));
    }
  }

  void addLeaves(std::size_t n) {
    while (true) {
      takeMarks();
      std::size_t some = n; // up to the next mark
      if (taken_.size() < marks_.size()) some = std::min(n, marks_[taken_.size()] - next_);
      if (some == 0) return;
      tape_.leaves(some);
      settle(some);
      n -= some;
    }
  }

  // The newest nodes get the values they had.
  void settle(std::size_t n) {
    fromFileBytes(values_.subspan(next_ * sizeof(T), n * sizeof(T)),
                  tape_.values().subspan(base_ + next_, n));
    next_ += n;
  }

  void readRecord() {
    const std::uint64_t leaves = in_.integer();
    if (leaves >= head_.nodes - next_) in_.fail("more nodes than there are");
    addLeaves(static_cast<std::size_t>(leaves));
    const std::uint64_t place = in_.integer();
    if (place >= entries_.size()) in_.fail("an operation that is not listed");
    const Entry& entry = entries_[static_cast<std::size_t>(place)];
    if (entry.block != nullptr) return readBlock(*entry.block);
    T value;
    fromFileBytes(values_.subspan(next_ * sizeof(T), sizeof(T)), std::span<T>(&value, 1));
    const Code code = entry.code;
    std::uint64_t n = 0;
    if (const Layout layout = op::layoutOf(code); !op::isFew(layout)) {
      n = in_.integer();
      const bool isRun = layout == Layout::run || layout == Layout::runs;
      if (n > (isRun ? next_ : in_.left() / (layout == Layout::lists ? 2 : 1)))
        in_.fail("a sequence of " + std::to_string(n) + " operands");
      if (n == 0 && (opOf(code) == Op::eMaxVarying || opOf(code) == Op::eMinVarying))
        in_.fail("the extremum of no operands");
    }
    detail::TapeRebuild::pushRecord(tape_, code, static_cast<std::size_t>(n), value, Fields{*this});
    settle(1);
  }

  struct Fields { // of the next record, as they stand in the file
    GraphReader& reader;
    Index node(std::size_t n) const { return reader.operand(n); }
    T number() const { return reader.in_.template number<T>(); }
  };

  // A node that is older than the next one, by its distance from that; n neighbours from there on.
  Index operand(std::size_t n = 1) {
    const std::uint64_t distance = in_.integer();
    if (distance > next_ || distance < n) in_.fail("an operand that is not older than its result");
    return static_cast<Index>(base_ + next_ - static_cast<std::size_t>(distance));
  }

  void readBlock(const KnownBlock<T, O...>& known) {
    BlockParts<T, O...> block;
    const std::uint64_t results = in_.integer();
    if (results == 0 || results > head_.nodes - next_) in_.fail("a block of too many results");
    block.results = static_cast<std::size_t>(results);
    for (std::size_t n = in_.count(3); n != 0; --n) block.views.push_back(readView());
    for (std::size_t n = in_.count(1); n != 0; --n) {
      const std::uint64_t parameter = in_.integer();
      if (parameter > TapeType::maxNodes) in_.fail("a parameter that no index can be");
      block.parameters.push_back(static_cast<std::size_t>(parameter));
    }
    block.kept.resize(in_.count(sizeof(T)));
    fromFileBytes(in_.raw(block.kept.size() * sizeof(T)), std::span<T>(block.kept));
    const std::size_t before = tape_.records().size();
    known.record(block);
    // It must be what was saved in every number: kinds check their operands, not each parameter.
    const auto& record = tape_.records().back();
    if (tape_.records().size() != before + 1 || !record.isBlock())
      in_.fail("a block that can't be recorded");
    const auto frame = tape_.frame(record);
    const bool same = &frame.description.methods() == known.methods &&
                      frame.count == block.results &&
                      known.parameters(frame) == block.parameters.size() &&
                      std::equal(block.parameters.begin(), block.parameters.end(),
                                 frame.description.parameters()) &&
                      frame.description.constants() == block.kept.size();
    if (!same) in_.fail("a block of other parameters than such blocks have");
    std::copy(block.kept.begin(), block.kept.end(), frame.kept);
    settle(block.results);
  }

  View<T, O...> readView() {
    const std::uint64_t distance = in_.integer(), rows = in_.integer(), cols = in_.integer();
    if (distance > next_ || rows > head_.nodes || cols > head_.nodes)
      in_.fail("an operand that is not older than its result");
    return View<T, O...>::at(tape_, base_ + next_ - static_cast<std::size_t>(distance),
                             static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
  }

  TapeType& tape_;
  KnownBlocks<T, O...> blocks_;
  GraphHead head_;
  std::size_t base_, next_ = 0; // of the file's nodes, so many are on the tape
  ByteReader in_;
  Bytes values_, grads_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> marks_;
  std::vector<typename TapeType::Mark> taken_;
};

} // namespace detail

// ---- what programs call --------------------------------------------------------------------------

template <class T, class... O>
std::vector<std::byte> saveGraph(const Tape<T, O...>& tape,
                                 const std::type_identity_t<GraphOptions<T, O...>>& options = {}) {
  return detail::GraphWriter<T, O...>(tape, options).write();
}
template <class T, class... O>
void saveGraph(const Tape<T, O...>& tape, const std::filesystem::path& path,
               const std::type_identity_t<GraphOptions<T, O...>>& options = {}) {
  writeFile(path, Bytes(saveGraph(tape, options)), options.writing);
}

template <class T, class... O>
LoadedGraph<T, O...> loadGraph(Tape<T, O...>& tape, Bytes from,
                               std::type_identity_t<KnownBlocks<T, O...>> blocks = {}) {
  return detail::GraphReader<T, O...>(tape, from, blocks).read();
}
// The bytes of a file that begins as graphs do, and no more than it says it has, but one. Read, not mapped:
// what another process does to the file meanwhile must not matter.
inline std::vector<std::byte> readGraph(const std::filesystem::path& path) {
  detail::OpenFile file(path, detail::OpenFile::For::reading);
  std::vector<std::byte> content;
  detail::readMore(file, content, detail::GraphFile::headBytes);
  detail::ByteReader start(content);
  const std::uint64_t size = detail::readGraphStart(start).size;
  if (size >= content.size())
    detail::readMore(file, content, static_cast<std::size_t>(size - content.size()) + 1);
  return content;
}
template <class T, class... O>
LoadedGraph<T, O...> loadGraph(Tape<T, O...>& tape, const std::filesystem::path& path,
                               std::type_identity_t<KnownBlocks<T, O...>> blocks = {}) {
  return loadGraph(tape, Bytes(readGraph(path)), blocks);
}

// The name of the scalar type of a stored graph: which tape to load it into.
inline std::string graphScalar(Bytes graph) { return detail::readGraphHead(graph).dtype; }

BURTORCH_END_NAMESPACE
