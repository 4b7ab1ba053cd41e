// When a long wait in the gate is said: after five seconds, and of all waits of a process one a
// minute.
#pragma once

#include <optional>

#include "csrc/base/units.h"

namespace gpushare::client {

class LongWaits {
 public:
  // Whether a wait that began at `since` is to be said now; if so it counts as said.
  [[nodiscard]] bool is_due(Nanos since, Nanos now) {
    constexpr Nanos kFirst = seconds(5);
    constexpr Nanos kNext = seconds(60);
    if (now - since < kFirst) return false;
    if (said_at_.has_value() && now - *said_at_ < kNext) return false;
    said_at_ = now;
    return true;
  }

 private:
  std::optional<Nanos> said_at_;
};

}  // namespace gpushare::client
