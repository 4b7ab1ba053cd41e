// The use that another allocator makes of our blocks, which it cuts up itself: torch's own on CUDA.
//
// Which problem it solves: a block that torch keeps as a cached segment is live to us, and yet may
// hold nothing. The use is read when the route closes; while that is closed nothing new comes to
// lie there.
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
  // Whole blocks of ours that may move. All others stay where they are: those that torch's snapshot
  // does not know, and those of other pools than torch's default ones (graphs', users').
  std::vector<ByteSpan> movable;
  std::vector<ByteSpan> used;  // what in all blocks holds something
};

}  // namespace gpushare::alloc
