// The size of a chunk as a number, for the arithmetic of tests and fakes; and how fakes get the
// pages of chunks quickly.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "csrc/vm/contract/vmm.h"

namespace gpushare::testing {

inline constexpr std::size_t kChunk = vm::kChunkBytes.to_size();

// Has the kernel map all pages of the range in one call, which is several times quicker than a
// fault for each. Only a help: kernels before 5.14 refuse, and the pages come one by one.
inline void map_pages(void* address, std::size_t size) {
#ifdef MADV_POPULATE_WRITE
  static_cast<void>(::madvise(address, size, MADV_POPULATE_WRITE));
#else
  static_cast<void>(address), static_cast<void>(size);
#endif
}

// Asks for huge pages under the range, so that a chunk costs one fault. Only a help.
inline void ask_for_huge_pages(void* address, std::size_t size) {
  static_cast<void>(::madvise(address, size, MADV_HUGEPAGE));
}

}  // namespace gpushare::testing
