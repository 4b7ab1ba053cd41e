// How the four wishes about a quantum are weighed.
//
// 1. At least as long as keeps the loss to switching below the allowed part, and as one iteration,
//    and min_quantum.
// 2. At most so long that the last of those who wait has its turn within max_wait. This wins over
//    the first.
// 3. But never so short that more than kMostLoss is lost to usual switches. This wins over the
//    second, since on a device that only moves memory nobody has short waits either.
// 4. If interactive or guaranteed jobs wait, at most so long that the last of them waits for
//    kUrgentWait. This wins over all.
//
// The overrun of the last turn is taken off, but never below what keeps the loss bounded.
#include "csrc/sched/plans/quantum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace gpushare::sched {

namespace {

// Most are back sooner, whatever a switch costs.
constexpr Nanos kShortPark = millis(20);

// The quantum with which the last of `num_waiting` waits no longer than `wait`.
Nanos each_of(Nanos wait, std::size_t num_waiting) {
  return wait / static_cast<std::int64_t>(std::max<std::size_t>(num_waiting, 1));
}

// The least quantum, however many jobs wait. With a shorter one, switches would take more of the
// time than kMostLoss, or than the setting allows if that is more.
Nanos least_of(const QuantumLimits& limits, const QuantumInput& input) {
  return time_for_loss(input.usual_stall, std::max(limits.switch_loss, kMostLoss));
}

}  // namespace

Nanos full_quantum(const QuantumLimits& limits, const QuantumInput& input) {
  const Nanos for_loss = time_for_loss(input.stall, limits.switch_loss);
  const Nanos floor = std::max(limits.min_quantum, input.iteration);
  Nanos ceiling = std::max(each_of(limits.max_wait, input.num_waiting), least_of(limits, input));
  if (input.num_urgent > 0) ceiling = std::min(ceiling, each_of(kUrgentWait, input.num_urgent));
  if (input.is_learning) return ceiling;
  return std::min(std::max(for_loss, floor), ceiling);
}

Nanos quantum(const QuantumLimits& limits, const QuantumInput& input) {
  const Nanos full = full_quantum(limits, input);
  const Nanos least = std::min(least_of(limits, input), full);
  return std::max(full - std::max(input.overrun, Nanos{}), least);
}

Nanos time_for_loss(Nanos stall, double part) {
  constexpr double kMostSeconds = 1e6;
  const double time = to_seconds(std::max(stall, Nanos{})) * (1.0 - part) / part;
  return Nanos{std::llround(std::min(time, kMostSeconds) * 1e9)};
}

double switch_loss(const QuantumLimits& limits, const QuantumInput& input) {
  const double stall = to_seconds(std::max(input.stall, Nanos{}));
  const double whole = stall + to_seconds(full_quantum(limits, input));
  return whole > 0 ? stall / whole : 0.0;
}

Nanos park_allowance(Nanos stall) { return std::max(stall, kShortPark) * 2; }

}  // namespace gpushare::sched
