// How long a lease lasts while others wait.
//
// It counts from when the holder's memory is back. Q >= stall (1 - f) / f, so that at most the part
// f of the device's time is lost to switching; at least the floor (min_quantum, and one iteration);
// at most the ceiling, so that of n turns before its next one the last is waited for no longer than
// max_wait. Where the floor and the ceiling collide the ceiling wins; an iteration is never cut,
// since leases end at boundaries. But loss is bounded before waits are: whatever the ceiling says,
// no more than kMostLoss is lost to usual switches, and the waits that follow are said (why.cpp).
// Only those who asked for short waits, interactive and guaranteed jobs, may cost more: the last of
// them waits no longer than kUrgentWait.
//
// A turn is a job's, or where users share the time another user's. A job whose sizes are unknown
// runs up to the ceiling (admission.h). What the last turn ran over its quantum is taken off the
// next one.
#pragma once

#include <cstddef>

#include "csrc/base/units.h"

namespace gpushare::sched {

// Ceiling on waiting for interactive and guaranteed jobs.
inline constexpr Nanos kUrgentWait = seconds(1);
// The most of the device's time that usual switches may cost, whatever waits follow.
inline constexpr double kMostLoss = 0.025;

struct QuantumLimits {
  Nanos min_quantum;
  Nanos max_wait;
  double switch_loss = 0.02;  // f
};

struct QuantumInput {
  Nanos stall;                  // what a switch to this job costs, or did this time
  Nanos usual_stall;            // what it costs on average: an odd one makes nobody wait for long
  Nanos iteration;              // how long one of its iterations takes
  Nanos overrun;                // of its last turn
  std::size_t num_waiting = 0;  // for turns (JobTable::num_turns)
  std::size_t num_urgent = 0;   // of them, interactive and guaranteed jobs
  bool is_learning = false;     // its sizes are unknown, or it is on trial (running_set.h)
};

// Without regard to the last turn's overrun.
Nanos full_quantum(const QuantumLimits& limits, const QuantumInput& input);
Nanos quantum(const QuantumLimits& limits, const QuantumInput& input);

// How long a job that cost `stall` to bring in has to run, so that no more than `part` of the time
// is lost.
Nanos time_for_loss(Nanos stall, double part);

// The part of the device's time that switching costs with that quantum: more than switch_loss where
// the ceiling wins.
double switch_loss(const QuantumLimits& limits, const QuantumInput& input);

// How long a job whose lease has ended is expected to take to want the next, so that it is worth
// waiting for.
Nanos park_allowance(Nanos stall);

}  // namespace gpushare::sched
