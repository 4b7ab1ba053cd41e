// Answers Needs that cannot be met: the allocation fails as out of memory in the job that asked,
// with the whole ledger in its text.
#pragma once

#include <string>

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// `why` is for the trace; the job's text names who holds what, and what would help.
void deny(Step& step, const WaitingNeed& need, const std::string& why);
// Denies a request that would exceed the memory_limit of the job or of its user.
void deny_for_limit(Step& step, const WaitingNeed& need);
// Too little is free for a Need that asked for no more than that. `why` is for the job as well.
void deny_only_free(Step& step, const WaitingNeed& need, const std::string& why);
// If nobody who holds room can go on without more of it, the newest Need fails, so that the others
// can be met.
void break_deadlock(Step& step);

}  // namespace gpushare::sched
