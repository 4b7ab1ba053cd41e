// How long a lease lasts while others wait (design 5.3).
//
// Q >= stall (1 - f) / f, so that at most the part f of the device's time is lost to switching; at
// least the floor (min_quantum, and one iteration); at most the ceiling, so that of n turns before
// its next one the last is waited for no longer than max_wait, and of the urgent ones (which come
// first) kUrgentWait. A turn is a job's, or where users share the time another user's. Where
// the floor and the ceiling collide the ceiling wins; an iteration is never cut, since leases end
// at boundaries. A job whose sizes are unknown runs up to the ceiling (admission.h). What the last
// turn ran over its quantum is taken off the next one.
#pragma once

#include <cstddef>

#include "csrc/base/units.h"

namespace gpushare::sched {

// Ceiling on waiting for interactive and guaranteed jobs.
inline constexpr Nanos kUrgentWait = seconds(1);
// A switch is taken to cost no less: shorter gaps are never worth one.
inline constexpr Nanos kMinSwitchCost = millis(20);

struct QuantumLimits {
  Nanos min_quantum;
  Nanos max_wait;
  double switch_loss = 0.02;  // f
};

struct QuantumInput {
  Nanos stall;                  // what a switch to this job costs
  Nanos iteration;              // how long one of its iterations takes
  Nanos overrun;                // of its last turn
  std::size_t num_waiting = 0;  // for turns (JobTable::num_turns)
  std::size_t num_urgent = 0;   // of them, interactive and guaranteed jobs
  bool is_learning = false;     // its sizes are unknown, or it is on trial (side_by_side.h)
};

// Without regard to the last turn's overrun.
Nanos full_quantum(const QuantumLimits& limits, const QuantumInput& input);
Nanos quantum(const QuantumLimits& limits, const QuantumInput& input);

// The part of the device's time that switching costs with that quantum: more than switch_loss where
// the ceiling wins.
double switch_loss(const QuantumLimits& limits, const QuantumInput& input);

// A holder's gap longer than this ends its quantum if somebody waits: twice the cost of a switch.
Nanos gap_allowance(Nanos stall);

}  // namespace gpushare::sched
