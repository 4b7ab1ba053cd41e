// Figures of the job's memory that are kept for readers without the state lock.
//
// Which problem it solves: the allocator's figures are a large struct, copied under its lock, and a
// boundary must cost well under a microsecond. So a boundary reads them only now and then, and the
// bytes of the outside arena are remembered in between. share() is asked for by torch's functions
// about free memory, which must not wait for a lock.
//
// All atomics are relaxed: each figure stands alone.
#pragma once

#include <atomic>
#include <cstdint>

#include "csrc/base/units.h"
#include "csrc/client/gate/iteration_times.h"

namespace gpushare::client {

class UsageFigures {
 public:
  // How old the allocator's figures on the page may be at a boundary.
  static constexpr Nanos kRefresh = millis(100);

  // At a boundary, on the thread that iterates. Whether the allocator's figures are to be read now;
  // if so they count as read.
  bool take_refresh(Nanos now) {
    if (now.value() - refreshed_ns_.load(kRelaxed) < kRefresh.value()) return false;
    refreshed_ns_.store(now.value(), kRelaxed);
    return true;
  }

  // Bytes of the outside arena, as of the moment when they were read.
  [[nodiscard]] Bytes outside() const { return Bytes{outside_bytes_.load(kRelaxed)}; }
  void set_outside(Bytes outside) { outside_bytes_.store(outside.value(), kRelaxed); }
  // The bytes of the device that the job may have; 0: it has no coordinator.
  [[nodiscard]] Bytes share() const { return Bytes{share_bytes_.load(kRelaxed)}; }
  void set_share(Bytes share) { share_bytes_.store(share.value(), kRelaxed); }

 private:
  std::atomic<std::int64_t> refreshed_ns_{0};
  std::atomic<std::int64_t> outside_bytes_{0};
  std::atomic<std::int64_t> share_bytes_{0};
};

}  // namespace gpushare::client
