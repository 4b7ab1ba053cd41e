#include "csrc/alloc/segment_store.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "csrc/base/clock.h"

namespace gpushare::alloc {

namespace {

// What this thread was refused at its last call; 0: nothing.
thread_local Bytes refused_before;

}  // namespace

Result<void*> SegmentStore::take(Bytes size) {
  const bool is_again = std::exchange(refused_before, Bytes{}) == size;
  const bool may_wait = is_again || asks_once_.load(std::memory_order_relaxed) ||
                        allocator_.route() == Route::kOutside;
  const Patience patience = may_wait ? Patience::kWaits : Patience::kOnlyFree;
  const Bytes whole = round_up(size, vm::kChunkBytes);
  Result<void*> segment = allocator_.allocate(whole, patience);
  const Nanos deadline = monotonic_now() + kDeviceLags;
  while (may_wait && !segment && is_device_full(segment.error(), whole) &&
         monotonic_now() < deadline) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kDeviceLook.value()));
    segment = allocator_.allocate(whole, patience);
  }
  if (!segment && !may_wait) refused_before = size;
  return segment;
}

bool SegmentStore::is_device_full(const Status& failure, Bytes size) const {
  return failure.code() == StatusCode::kOutOfMemory && share().has_value() &&
         allocator_.room() - allocator_.backed() >= size;
}

bool SegmentStore::give_back(void* address) {
  if (!allocator_.free(address)) return false;
  static_cast<void>(allocator_.empty_cache());
  return true;
}

std::optional<SegmentStore::Share> SegmentStore::share() const {
  const Bytes total = share_source_ ? share_source_() : Bytes{};
  if (total == Bytes{}) return std::nullopt;
  const Bytes used{allocator_.stats().allocated_bytes.all.current};
  return Share{.free = std::max(total - used, Bytes{}), .total = total};
}

}  // namespace gpushare::alloc
