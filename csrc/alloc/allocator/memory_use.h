// What another allocator, which cuts our blocks up itself, has put into them: torch's own on CUDA.
//
// Which problem it solves: a block that torch keeps as a cached segment is live to us, and yet may
// hold nothing. Read when the route closes; while it is closed no new thing comes to lie there.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::alloc {

struct ByteSpan {
  const std::byte* address = nullptr;
  Bytes size;
  [[nodiscard]] const std::byte* end() const { return address + size.to_size(); }
};

struct MemoryUse {
  // Whole blocks of ours that may move. Others stay where they are: those that torch had not told
  // of yet, and those of pools whose memory is used by other means than its addresses' owners.
  std::vector<ByteSpan> movable;
  std::vector<ByteSpan> used;  // what in all blocks holds something
};

}  // namespace gpushare::alloc
