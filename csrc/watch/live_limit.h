// Refuses a boundary where far more memory is live than at the last one: such a place is in the
// middle of an iteration, whose activations would have to be spilled.
#pragma once

#include <functional>
#include <utility>

#include "csrc/base/units.h"

namespace gpushare::watch {

class LiveLimit {
 public:
  using LiveBytes = std::function<Bytes()>;

  // An empty `live_bytes` refuses nothing.
  explicit LiveLimit(LiveBytes live_bytes) : live_bytes_(std::move(live_bytes)) {}

  // Whether the boundary that is about to be made must not be. After a few refusals in a row the
  // larger amount counts as normal.
  [[nodiscard]] bool refuses();
  // Bytes that were live at the last boundary; 0 where that is not known.
  [[nodiscard]] Bytes last() const { return last_; }

 private:
  LiveBytes live_bytes_;
  Bytes last_;
  int num_refusals_ = 0;  // in a row
};

}  // namespace gpushare::watch
