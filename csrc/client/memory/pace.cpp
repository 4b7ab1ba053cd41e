// A portion goes at full speed, and the next one is due when the last would have ended at the rate.
// Time that passed unused earns nothing: due times follow from the last portion alone. So copies
// never catch up by a burst.
#include "csrc/client/memory/pace.h"

#include <algorithm>
#include <cstdint>

namespace gpushare::client {
namespace {

constexpr std::int64_t kPortionsPerSecond = 100;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
constexpr Bytes kMostPortion = mib(64);  // so that no product below wraps

Nanos time_of(Bytes bytes, Bytes rate) {
  return Nanos{bytes.value() * kNanosPerSecond / rate.value()};
}

}  // namespace

// About 10 ms of bytes, in whole pieces; at a very low rate one piece, which then takes longer.
Bytes Pace::portion_at(Bytes rate) const {
  const Bytes even = round_down(rate / kPortionsPerSecond, piece_);
  return std::clamp(even, piece_, std::max(kMostPortion, piece_));
}

Pace::Turn Pace::next(Bytes rate, Bytes most, Nanos now) {
  if (rate <= Bytes{0} || most <= Bytes{0}) return {most, Nanos{0}};
  const Nanos due = last_at_ + time_of(last_, rate);
  if (now < due) return {Bytes{0}, due - now};
  last_ = std::min(most, portion_at(rate));
  last_at_ = now;
  return {last_, Nanos{0}};
}

}  // namespace gpushare::client
