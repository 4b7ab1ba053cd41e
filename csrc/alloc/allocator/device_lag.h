// The device can lag behind the books: a killed job's room is granted when its process is gone, and
// a process that it forked may have its memory for some seconds more.
#pragma once

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

// One wait for it, from now on.
class DeviceLag {
 public:
  // How often to look again.
  static constexpr Nanos kLook = millis(20);

  // Whether `failure` may pass: the device lacks `needed` bytes that there is room for, and it has
  // not been waited for too long.
  [[nodiscard]] bool explains(const Status& failure,
                              const CachingAllocator& allocator,
                              Bytes needed) const {
    return failure.code() == StatusCode::kOutOfMemory &&
           allocator.room() - allocator.backed() >= needed && monotonic_now() < ends_;
  }

 private:
  const Nanos ends_ = monotonic_now() + seconds(10);
};

}  // namespace gpushare::alloc
