// Under `pack`, the jobs that have leases now, and what is learned from their iterations.
//
// First each job runs alone, until its iterations are timed. Then others join one at a time: a set
// of jobs is on trial until it is known whether it pays (packing.h). How long iterations take is
// seen on pages (iteration_timing.h).
#pragma once

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Forgets how long the job's iterations last alone, so that they are timed anew. Called when the
// job has no more iterations of the kind that was timed.
void forget_pace(Device& device, Job& job);
// Whether something is to be learned from the iterations of those who run. Leases then last longer,
// since no lease's first iteration counts.
bool is_on_trial(const Table& table, Nanos now);
// Judges those who run, and notes when their pages must be looked at. Called once a step, after all
// leases were granted.
void judge_running(Step& step);

}  // namespace gpushare::sched
