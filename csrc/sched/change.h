// What people change of a running job: its priority, weight, limit and deadline.
//
// All of one Set, or nothing. A job that waits gets its place in line by the new record at once;
// whether a holder is asked for its lease is settled in what follows each step (ask.cpp). The job
// is told, and says the same when it registers anew; what it missed is in Job::changes.
#pragma once

#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/step.h"
#include "csrc/wire/changes.h"

namespace gpushare::sched {

// errors: kInvalidArgument, in words for who asked; nothing has changed then.
Status change_job(Step& step, JobId job, const wire::Changes& changes, const Requester& by);
// What was changed before counts more than what the job says of itself.
void apply_changes(Step& step, Job& job);
// Numbers within what a job may have. errors: kInvalidArgument.
Status check_ranges(const wire::Changes& changes);

}  // namespace gpushare::sched
