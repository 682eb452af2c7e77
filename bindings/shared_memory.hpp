// bindings/shared_memory.hpp — memory of a tape that NumPy views can keep alive
// SPDX-License-Identifier: MIT
#pragma once

#include <burtorch/base/memory.hpp>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

namespace burtorch_python {

// A memory policy whose blocks count their owners: the tape, and every view of the block. When a
// tape outgrows a block that is being viewed, the block stays with its views as it was.
struct SharedMemory {
  static void* allocate(std::size_t bytes) {
    std::byte* const start = static_cast<std::byte*>(Heap::allocate(bytes + headerBytes));
    new (start) Header{1, bytes + headerBytes};
    return start + headerBytes;
  }

  static void* grow(void* block, std::size_t bytes, std::size_t keep, std::size_t newBytes) {
    if (block != nullptr && headerOf(block)->owners.load() == 1) {
      const std::size_t had = headerOf(block)->bytes;
      void* const start =
          Heap::grow(headerOf(block), had, keep + headerBytes, newBytes + headerBytes);
      static_cast<Header*>(start)->bytes = newBytes + headerBytes;
      return static_cast<std::byte*>(start) + headerBytes;
    }
    void* const fresh = allocate(newBytes);
    if (keep != 0) std::memcpy(fresh, block, keep);
    release(block, bytes);
    return fresh;
  }

  static void retain(void* block) { ++headerOf(block)->owners; }

  static void release(void* block, std::size_t) noexcept {
    if (block != nullptr && --headerOf(block)->owners == 0)
      Heap::release(headerOf(block), headerOf(block)->bytes);
  }

private:
  using Heap = burtorch::HeapMemory;
  struct Header {
    std::atomic<long> owners;
    std::size_t bytes; // of the whole, header included
  };
  static constexpr std::size_t headerBytes = Heap::alignment;
  static_assert(sizeof(Header) <= headerBytes);
  static Header* headerOf(void* block) {
    return reinterpret_cast<Header*>(static_cast<std::byte*>(block) - headerBytes);
  }
};

} // namespace burtorch_python
