#include "csrc/alloc/allocator/segment_store.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "csrc/alloc/allocator/device_lag.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {

namespace {

// What this thread was refused at its last call; 0: nothing.
thread_local Bytes refused_before;

}  // namespace

Result<void*> SegmentStore::take(Bytes size) {
  const bool is_again = std::exchange(refused_before, Bytes{}) == size;
  const Bytes whole = round_up(size, vm::kChunkBytes);
  bool may_wait = is_again || asks_once_.load(std::memory_order_relaxed);
  Result<void*> segment =
      allocator_.allocate(whole, may_wait ? Patience::kWaits : Patience::kOnlyFree);
  // Torch may have begun to ask once while it had the answer coming.
  if (!segment && !may_wait && asks_once_.load(std::memory_order_relaxed)) {
    may_wait = true;
    segment = allocator_.allocate(whole, Patience::kWaits);
  }
  if (!segment && may_wait && share().has_value()) await_device(whole, segment);
  if (!segment && !may_wait) refused_before = size;
  return segment;
}

// For what a coordinator has given this process room for.
void SegmentStore::await_device(Bytes size, Result<void*>& segment) {
  const DeviceLag lag;
  bool is_said = false;
  while (!segment && lag.explains(segment.error(), allocator_, size)) {
    if (!std::exchange(is_said, true)) {
      log::warn("waiting for memory that others gave up and the device still has: {}",
                segment.error().message());
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(DeviceLag::kLook.value()));
    segment = allocator_.allocate(size, Patience::kWaits);
  }
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
