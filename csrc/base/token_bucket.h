// A limit on how often something happens: so many times a second, and after a pause up to `burst`
// at once.
//
//     TokenBucket lines(100, 2000);
//     if (lines.take(monotonic_now())) write(line);
//
// One thread at a time.
#pragma once

#include <algorithm>

#include "csrc/base/units.h"

namespace gpushare {

class TokenBucket {
 public:
  // Full. pre: both are positive.
  TokenBucket(double per_second, double burst)
      : per_second_(per_second), burst_(burst), tokens_(burst) {}

  // Whether it may happen once more, now. pre: `now` is not before that of an earlier call.
  bool take(Nanos now) {
    tokens_ = tokens_at(now);
    at_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // Whether nothing has been taken for so long that it is as new.
  [[nodiscard]] bool is_full(Nanos now) const { return tokens_at(now) >= burst_; }

 private:
  [[nodiscard]] double tokens_at(Nanos now) const {
    if (at_ == Nanos{}) return burst_;
    return std::min(burst_, tokens_ + to_seconds(now - at_) * per_second_);
  }

  double per_second_;
  double burst_;
  double tokens_;
  Nanos at_;  // of the last call; 0: none yet
};

}  // namespace gpushare
