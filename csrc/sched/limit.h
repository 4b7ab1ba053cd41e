// Limits on what one job may hold, which may change while it runs.
//
// A limit below what the job needs for its iterations would end it, so it is refused. What a job
// holds beyond its limit (cached memory, mostly) is asked back when it can give it.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/step.h"

namespace gpushare::sched {

// 0: no limit. `by`: the user that asks, if it may limit its own jobs only. errors:
// kInvalidArgument; nothing has changed then.
Status limit_job(Step& step, JobId job, Bytes limit, std::optional<std::uint32_t> by);
// Asks jobs that hold more than their limit for the difference.
void hold_to_limits(Step& step, Device& device);

}  // namespace gpushare::sched
