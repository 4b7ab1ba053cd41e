// When the log says that a thread waits in the gate: once the wait has lasted for five seconds, and
// at most once a minute for all waits of the process.
#pragma once

#include <optional>

#include "csrc/base/units.h"

namespace gpushare::client {

class LongWaits {
 public:
  // Whether to say now that a wait began at `since`. If so it counts as said.
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
