// burtorch/base/memory.hpp — where the owned memory of tapes comes from
// SPDX-License-Identifier: MIT
//
// A tape asks a memory policy for its arrays. HeapMemory is the default; another type with the same
// three functions, given as an option (Tape<double, MyMemory>), replaces it. Blocks are aligned to
// a cache line.
//
// Where the system can (Linux), large blocks are mapped and grow by moving page tables instead of
// numbers: copying would also touch twice the pages, and touching new pages is what the first pass
// over a large tape spends its time on.
#pragma once

#include <burtorch/base/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__) && defined(__GLIBC__)
#include <sys/mman.h>
#define BURTORCH_MAPS_MEMORY 1
#else
#define BURTORCH_MAPS_MEMORY 0
#endif

BURTORCH_BEGIN_NAMESPACE

template <class M>
concept MemoryPolicy = requires(void* block, std::size_t bytes) {
  { M::allocate(bytes) } -> std::same_as<void*>; // throws std::bad_alloc
  // block, its bytes, bytes to keep, new bytes
  { M::grow(block, bytes, bytes, bytes) } -> std::same_as<void*>;
  M::release(block, bytes);
};

struct HeapMemory {
  static constexpr std::size_t alignment = 64;

  static void* allocate(std::size_t bytes) {
#if BURTORCH_MAPS_MEMORY
    if (bytes >= mapFrom)
      return mapped(::mmap(nullptr, bytes + padding, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
#endif
    return ::operator new(bytes, std::align_val_t{alignment});
  }

  static void release(void* block, std::size_t bytes) noexcept {
    if (block == nullptr) return;
#if BURTORCH_MAPS_MEMORY
    if (bytes >= mapFrom) {
      ::munmap(block, bytes + padding);
      return;
    }
#endif
    static_cast<void>(bytes);
    ::operator delete(block, std::align_val_t{alignment});
  }

  // Like std::realloc; if it throws, the old block is untouched.
  static void* grow(void* block, std::size_t bytes, std::size_t keep, std::size_t newBytes) {
#if BURTORCH_MAPS_MEMORY
    if (bytes >= mapFrom && newBytes >= mapFrom)
      return mapped(::mremap(block, bytes + padding, newBytes + padding, MREMAP_MAYMOVE));
#endif
    void* const fresh = allocate(newBytes);
    if (keep != 0) std::memcpy(fresh, block, keep);
    release(block, bytes);
    return fresh;
  }

#if BURTORCH_MAPS_MEMORY
private:
  static constexpr std::size_t mapFrom = std::size_t{1} << 20;

  // Blocks are powers of two and the system maps them side by side. Values and gradients of the same
  // node would then differ in few address bits, and first-level caches that guess a line by a hash
  // of those bits (AMD's) would mistake one for the other: three times slower, measured on chains of
  // 10⁷ nodes. A few pages between them break the pattern.
  static constexpr std::size_t padding = 17 * 4096;

  static void* mapped(void* block) {
    if (block != MAP_FAILED) return block;
#if BURTORCH_EXCEPTIONS
    throw std::bad_alloc();
#else
    std::abort();
#endif
  }
#endif
};

BURTORCH_END_NAMESPACE
