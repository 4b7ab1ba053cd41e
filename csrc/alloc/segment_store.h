// The face towards torch's own CUDA allocator: it asks for segments, as of the driver, and gives
// them back; what it does inside them is its own affair (memory_use.h).
//
// A segment is one block of the caching allocator below, so it has its arenas, its room and its
// residency. What is given back goes back to the device at once, as cudaFree does: torch gives
// back what it wants nobody to keep.
//
// threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "csrc/alloc/caching_allocator.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

class SegmentStore {
 public:
  // The allocator must outlive it.
  explicit SegmentStore(CachingAllocator& allocator) : allocator_(allocator) {}

  // A segment of `size` bytes, rounded up to whole chunks and aligned to one, contents unspecified.
  // pre: size > 0. errors: kOutOfMemory with the text for the user; kCancelled.
  Result<void*> take(Bytes size);
  // false: the address is not ours (nothing was done). pre: the device has done all work on it.
  bool give_back(void* address);
  [[nodiscard]] bool owns(const void* address) const { return allocator_.owns(address); }

  // What this process may use in all, and of that what it does not use.
  struct Share {
    Bytes free;
    Bytes total;
  };
  // None: there is no limit but the device.
  [[nodiscard]] std::optional<Share> share() const;
  // 0: no limit.
  void set_share_total(Bytes total) {
    share_total_.store(total.value(), std::memory_order_relaxed);
  }

 private:
  CachingAllocator& allocator_;
  // In bytes, 0: no limit. relaxed: a figure alone.
  std::atomic<std::int64_t> share_total_{0};
};

}  // namespace gpushare::alloc
