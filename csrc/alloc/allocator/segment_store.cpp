// When a request of torch's may wait. torch asks a first time, and if it is refused gives back the
// segments it has cached and asks again, for the same size and on the same thread. So the first
// request takes only what is free, and the second one may wait for other jobs. The thread remembers
// what it was refused; any other request in between forgets it. While torch asks only once
// (set_asks_once), that one may wait.
//
// A process with a share may have room that the device cannot give yet: a process that was killed
// may still hold it. Then the request is tried again for 10 s (device_lag.h).
#include "csrc/alloc/allocator/segment_store.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "csrc/alloc/allocator/device_lag.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {

namespace {

// The size that this thread was refused at its last call; 0: nothing.
thread_local Bytes refused_before;

}  // namespace

Result<void*> SegmentStore::take(Bytes size) {
  const bool is_again = std::exchange(refused_before, Bytes{}) == size;
  const Bytes whole = round_up(size, vm::kChunkBytes);
  bool may_wait = is_again || asks_once_.load(std::memory_order_relaxed);
  Result<void*> segment =
      allocator_.allocate(whole, may_wait ? Patience::kWaits : Patience::kOnlyFree);
  // torch may have begun to ask only once while this request was under way.
  if (!segment && !may_wait && asks_once_.load(std::memory_order_relaxed)) {
    may_wait = true;
    segment = allocator_.allocate(whole, Patience::kWaits);
  }
  if (!segment && may_wait && share().has_value()) await_device(whole, segment);
  if (!segment && !may_wait) refused_before = size;
  return segment;
}

// Waits for memory that a coordinator has given this process room for and the device does not have
// yet.
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

// All free memory goes to the device at once, as after cudaFree(): torch keeps itself what it wants
// to keep.
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
