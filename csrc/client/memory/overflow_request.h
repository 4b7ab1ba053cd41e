// The request for room into which overflow can move, and when to make the next one.
//
// Which problem it solves: overflow is used slowly until it has room, so the job asks for room
// again and again. A coordinator that has none must not be asked without a pause. At most one
// request is open at a time. The first is made at once. One that was granted is followed by the
// next one after a second. One that was denied doubles the pause, from two seconds up to a minute.
//
// Pure bookkeeping; the owner's lock keeps calls apart, and the owner asks (NeedTable) and moves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "csrc/base/units.h"

namespace gpushare::client {

class OverflowRequest {
 public:
  static constexpr Nanos kFirstPause = seconds(1);
  static constexpr Nanos kLongestPause = seconds(60);

  // The number of the open request; empty if none is open.
  [[nodiscard]] std::optional<std::uint64_t> need() const { return need_; }
  // pre: none is open.
  void open(std::uint64_t need) { need_ = need; }
  // The open request was answered.
  void close(bool is_granted, Nanos now) {
    need_.reset();
    pause_ = is_granted ? kFirstPause : std::min(pause_ * 2, kLongestPause);
    answered_at_ = now;
  }
  // Whether the pause after the last answer is over, if there was one.
  [[nodiscard]] bool is_due(Nanos now) const {
    return !answered_at_.has_value() || now - *answered_at_ >= pause_;
  }

 private:
  std::optional<std::uint64_t> need_;
  std::optional<Nanos> answered_at_;
  Nanos pause_ = kFirstPause;
};

}  // namespace gpushare::client
