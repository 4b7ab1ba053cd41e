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
#include <functional>
#include <optional>
#include <utility>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

class SegmentStore {
 public:
  // The allocator must outlive it.
  explicit SegmentStore(CachingAllocator& allocator) : allocator_(allocator) {}

  // A segment of `size` bytes, rounded up to whole chunks and aligned to one, contents unspecified.
  // Torch asks again, on the same thread, when it has given back what it kept for later; only then,
  // and while it asks once (set_asks_once), others are waited for, and the device where it lags
  // behind the room that there is. pre: size > 0. errors: kOutOfMemory with the text for
  // the user; kCancelled; kIo.
  Result<void*> take(Bytes size);
  // Torch does not ask again from now on, or does: it does not while it routes any allocation to a
  // pool other than its own.
  void set_asks_once(bool asks_once) { asks_once_.store(asks_once, std::memory_order_relaxed); }
  // false: the address is not ours (nothing was done). pre: the device has done all work on it.
  bool give_back(void* address);
  [[nodiscard]] bool owns(const void* address) const { return allocator_.owns(address); }

  // How much this process may use in all, and how much of that it does not use.
  struct Share {
    Bytes free;
    Bytes total;
  };
  // Nothing if there is no limit but the device's size.
  [[nodiscard]] std::optional<Share> share() const;
  // Says the total, 0 for no limit. Called on any thread, under locks of torch's: it must take
  // none.
  void set_share_source(std::function<Bytes()> source) { share_source_ = std::move(source); }

 private:
  void await_device(Bytes size, Result<void*>& segment);

  CachingAllocator& allocator_;
  std::function<Bytes()> share_source_;
  // relaxed: torch's lock comes between this and what it is about.
  std::atomic<bool> asks_once_{false};
};

}  // namespace gpushare::alloc
