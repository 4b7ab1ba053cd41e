// Limits on what one job may hold, which may change while it runs.
//
// A limit below what the job needs for its iterations would end it, so it is refused. What a job
// holds beyond its limit (cached memory, mostly) is asked back when it can give it.
#pragma once

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/step.h"

namespace gpushare::sched {

// Whether the job can go on with that limit; 0: none. errors: kInvalidArgument, in words for who
// asked.
Status check_limit(const Job& job, Bytes limit);
// Asks jobs that hold more than their limit for the difference.
void hold_to_limits(Step& step, Device& device);

}  // namespace gpushare::sched
