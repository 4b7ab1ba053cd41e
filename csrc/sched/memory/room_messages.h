// The two messages that change a job's room: Grant, which raises it, and Revoke, which asks the job
// to give some of it back. Each has the next of the job's numbers.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Raises the job's room by so much, and tells it the new total. pre: no Revoke of the job is
// unanswered.
void grant_room(Step& step, Job& job, Bytes by, std::uint64_t need_n);
// Asks the job for so much of its room. `host_kept` of the host tier is for others. pre: no Revoke
// of the job is unanswered.
void revoke_room(Step& step, Job& job, Bytes bytes, Bytes host_kept, const std::string& reason);

}  // namespace gpushare::sched
