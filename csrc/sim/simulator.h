// Simulates what would happen: jobs on virtual time, driven by the same coordinator code as real
// ones. For trying policies and options on a laptop, and for tests of fairness that need no clock.
//
// A scenario is text, one thing a line, `#` begins a comment:
//
//     device capacity=2GiB policy=fair bandwidth=8GiB switch=1ms min_quantum=250ms until=60s
//     job name=a weight=2 iteration=100ms gap=5ms iterations=500 live=600MiB peak=900MiB
//     job name=b at=3s    iteration=40ms  iterations=900 live=300MiB peak=1GiB priority=interactive
//
// device: capacity, policy (also `exclusive` and `maxmin`: jobs do not share,
// dispatch/central_queue.h and run/rounds.h), num_lanes, pack_lanes, min_quantum, max_wait,
// switch_loss, memory_wait,
//   host_budget, host_file as in CoordinatorOptions; devices (so many, default 1), speeds (of each,
//   as 1,1,0.5 or with kinds a:1,b:0.5: beside the device that the jobs' times are of), rebind
//   (never, unbegun or any: who may go to a device that has become idle), until (stop then;
//   default: when all jobs have ended), most_events; gap_poll (look at a holder's page so often, as
//   the daemon does; without it, when the page has news: sim_job.h), each_iteration=1 (an event for
//   each boundary: slow, for tests). What it costs, as in Models: bandwidth (all four at once) or
//   spill_bandwidth, restore_bandwidth, file_spill_bandwidth, file_restore_bandwidth; duplex,
//   switch, context, interference, failure_every, restart, checkpoint.
// user: name, weight, share_limit, memory_limit, elastic (0 or 1).
// job: name, user, at (arrival, default 0s), iteration, gap (default 0s), iterations, live (bytes
//   at a boundary), peak (inside an iteration), weight, utilisation (of
//   the device, while it runs alone), priority, limit (memory_limit), share_limit, elastic (0 or 1,
//   of both limits), deadline (of an iteration), due (when it should be done, after its arrival:
//   only reported), speeds (a:1/b:0.2, on devices of these kinds).
//
// The other form is a trace, a table of jobs (trace.h), with the fields of the device line apart.
// Both are the same simulation. docs/simulator.md is for its users.
//
// A simulated job backs its live bytes when it arrives, then runs its iterations; parked, it drops
// and spills what it is asked for, and restores it at its next lease. Messages take no time. A
// coordinator is told what a real job would tell it, no more: that it learns iteration times and
// sizes from pages is simulated too. Only in which of several devices a job goes is decided by the
// sizes in its row (csrc/host/device_placement.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/sim/report.h"
#include "csrc/sim/run/simulation.h"

namespace gpushare::sim {

// Runs a scenario to its end; the report is JSON text, an object: schema_version (1), policy,
// devices, makespan_seconds (from the first arrival to the last end), serial_seconds (all
// iterations one after the other), utilisation (share of the devices' time with an open lease),
// switches, moved_bytes; num_failures and lost_seconds (of iterations that are done again, on all
// devices of a job), num_moves (how often a job left its device for another, or to wait); num_jobs,
// num_finished, num_denied, num_late (past when they were due); completion_seconds (from arrival to
// end), slowdown (that over the time alone) and wait_seconds (for leases) of those that finished,
// as average, median, p95, p99, worst, or null; bound_seconds (the least average completion that
// any schedule of those in as many lanes could have, bound.h); num_steps (messages to coordinators,
// and deadlines), num_decisions (their messages, and leases granted and asked for); jobs: a row
// each with name, user, device, outcome ("finished" "denied" "running"), arrival_seconds,
// finish_seconds, alone_seconds (if it never waits), iterations, leases, served_seconds (in
// leases), busy_seconds (in iterations), waited_seconds, moved_bytes. errors: kInvalidArgument for
// a line it cannot read; kFailedPrecondition for a scenario that does not end; kCancelled if
// `keeps_going` said so.
Result<std::string> run_scenario(std::string_view text, const KeepsGoing& keeps_going = {});

// The same with the text of a trace; `device` has the fields of a device line. With detail.leases
// the report has `leases`: [device, index of the job, from, to in seconds] each.
Result<std::string> run_trace(const std::string& device,
                              std::string_view trace,
                              const Detail& detail,
                              const KeepsGoing& keeps_going = {});

std::vector<std::string> policy_names();

}  // namespace gpushare::sim
