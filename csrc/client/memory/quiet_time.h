// How long a process has neither allocated nor freed, as seen from time to time.
//
// Which problem it solves: a process that has no iterations gives no sign that it is between two of
// them. One that has done nothing with its memory for a while may be a rank that waits for a peer,
// while the peer waits for that memory.
//
// Pure bookkeeping; the owner's lock keeps calls apart.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/base/units.h"

namespace gpushare::client {

class QuietTime {
 public:
  // How long that number has been the same, as far as was looked. `num_operations`: allocations and
  // frees so far.
  [[nodiscard]] Nanos observe(std::int64_t num_operations, Nanos now) {
    if (num_operations_ != num_operations) {
      num_operations_ = num_operations;
      since_ = now;
    }
    return now - since_;
  }

 private:
  std::optional<std::int64_t> num_operations_;
  Nanos since_;
};

}  // namespace gpushare::client
