// Limits on what one job may hold, which may change while it runs.
//
// A limit below what the job needs for its iterations would end it, so it is refused. What a job
// holds beyond its limit (cached memory, mostly) is asked back when it can give it.
//
// An elastic one ends nothing: the job gets what it needs, and where others lack room it gives what
// is beyond the limit before anybody else gives (memory_plan.h).
#pragma once

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// The bytes that the job holds beyond its limit, hard or elastic. 0 without a limit.
Bytes beyond_own_limit(const Device& device, const Job& job);
// Whether the job can go on with that hard limit; 0: none. errors: kInvalidArgument, in words for
// who asked.
Status check_limit(const Job& job, Bytes limit);
// Asks jobs that hold more than their limit for the difference.
void hold_to_limits(Step& step);

}  // namespace gpushare::sched
