#include "csrc/sched/quantum.h"

#include <algorithm>
#include <cstdint>

namespace gpushare::sched {

namespace {

// The quantum with which the last of `num_waiting` waits no longer than `wait`.
Nanos each_of(Nanos wait, std::size_t num_waiting) {
  return wait / static_cast<std::int64_t>(std::max<std::size_t>(num_waiting, 1));
}

}  // namespace

Nanos full_quantum(const QuantumLimits& limits, const QuantumInput& input) {
  const double f = limits.switch_loss;
  const double for_loss = static_cast<double>(input.stall.value()) * (1.0 - f) / f;
  const Nanos floor = std::max(limits.min_quantum, input.iteration);
  Nanos ceiling = each_of(limits.max_wait, input.num_waiting);
  if (input.num_urgent > 0) ceiling = std::min(ceiling, each_of(kUrgentWait, input.num_urgent));
  if (input.is_learning || for_loss >= static_cast<double>(ceiling.value())) return ceiling;
  return std::min(std::max(Nanos{static_cast<std::int64_t>(for_loss)}, floor), ceiling);
}

Nanos quantum(const QuantumLimits& limits, const QuantumInput& input) {
  const Nanos full = full_quantum(limits, input);
  return full - std::min(std::max(input.overrun, Nanos{}), full);
}

double switch_loss(const QuantumLimits& limits, const QuantumInput& input) {
  const double stall = to_seconds(std::max(input.stall, Nanos{}));
  const double whole = stall + to_seconds(full_quantum(limits, input));
  return whole > 0 ? stall / whole : 0.0;
}

Nanos gap_allowance(Nanos stall) { return std::max(stall, kMinSwitchCost) * 2; }

}  // namespace gpushare::sched
