// Why a job runs, waits or is idle now, and what would change that: for `gpushare why`.
//
// Nothing is guessed: the lease's reasons are those that were recorded as decisions, the order is
// the policy's own, and what is said to help was tried on a copy of the job's record.
#pragma once

#include "csrc/base/units.h"
#include "csrc/sched/report/rows.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

Why why(const Table& table, const Job& job, Nanos now);

}  // namespace gpushare::sched
