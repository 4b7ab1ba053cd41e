#include "csrc/alloc/segment_store.h"

#include <algorithm>

namespace gpushare::alloc {

Result<void*> SegmentStore::take(Bytes size) {
  return allocator_.allocate(round_up(size, vm::kChunkBytes));
}

bool SegmentStore::give_back(void* address) {
  if (!allocator_.free(address)) return false;
  static_cast<void>(allocator_.empty_cache());
  return true;
}

std::optional<SegmentStore::Share> SegmentStore::share() const {
  const Bytes total{share_total_.load(std::memory_order_relaxed)};
  if (total == Bytes{}) return std::nullopt;
  const Bytes used{allocator_.stats().allocated_bytes.all.current};
  return Share{.free = std::max(total - used, Bytes{}), .total = total};
}

}  // namespace gpushare::alloc
