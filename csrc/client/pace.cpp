#include "csrc/client/pace.h"

#include <algorithm>
#include <cstdint>

#include "csrc/vm/vmm.h"

namespace gpushare::client {
namespace {

constexpr std::int64_t kPortionsPerSecond = 100;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
constexpr Bytes kMostPortion = mib(64);  // so that no product below wraps

Bytes portion_at(Bytes rate) {
  const Bytes even = round_down(rate / kPortionsPerSecond, vm::kChunkBytes);
  return std::clamp(even, vm::kChunkBytes, kMostPortion);
}

Nanos time_of(Bytes bytes, Bytes rate) {
  return Nanos{bytes.value() * kNanosPerSecond / rate.value()};
}

}  // namespace

Pace::Turn Pace::next(Bytes rate, Bytes most, Nanos now) {
  if (rate <= Bytes{0} || most <= Bytes{0}) return {most, Nanos{0}};
  const Nanos due = last_at_ + time_of(last_, rate);
  if (now < due) return {Bytes{0}, due - now};
  last_ = std::min(most, portion_at(rate));
  last_at_ = now;
  return {last_, Nanos{0}};
}

}  // namespace gpushare::client
