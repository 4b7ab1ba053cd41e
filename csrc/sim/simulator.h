// What would happen: simulated jobs on virtual time, driven by the same coordinator code as real
// ones. For trying policies and options on a laptop, and for tests of fairness that need no clock.
//
// A scenario is text, one thing a line, `#` begins a comment:
//
//     device capacity=2GiB policy=fair bandwidth=8GiB switch=1ms min_quantum=250ms until=60s
//     job name=a weight=2 iteration=100ms gap=5ms iterations=500 live=600MiB peak=900MiB
//     job name=b at=3s    iteration=40ms  iterations=900 live=300MiB peak=1GiB priority=interactive
//
// device: capacity, policy, num_lanes, min_quantum, max_wait, switch_loss, memory_wait, gap_poll,
//   host_budget, host_file as in CoordinatorOptions; bandwidth (bytes a second between device and
//   host tier, default 4 GiB); switch (what opening a lease costs without a copy, default 100us);
//   until (stop then; default: when all jobs have ended).
// job: name, at (arrival, default 0s), iteration, gap (default 0s), iterations, live (bytes at a
//   boundary), peak (inside an iteration), weight, priority, limit (memory_limit).
//
// A simulated job backs its live bytes when it arrives, then runs its iterations; parked, it drops
// and spills what it is asked for, and restores it at its next lease. One copy at a time per job,
// at full bandwidth; the host tier is not bounded. Messages take no time, and jobs in several lanes
// do not slow each other.
#pragma once

#include <string>
#include <string_view>

#include "csrc/base/status.h"

namespace gpushare::sim {

// Runs a scenario to its end; the report is JSON text: {"schema_version":1,"policy",
// "makespan_seconds","serial_seconds","switches","jobs":[{"name","outcome" ("finished" "denied"
// "running"),"finish_seconds","iterations","leases","served_seconds","waited_seconds",
// "moved_bytes"}]}.
// errors: kInvalidArgument for a line it cannot read; kDeadlineExceeded for a scenario that does
// not end.
Result<std::string> run_scenario(std::string_view text);

}  // namespace gpushare::sim
