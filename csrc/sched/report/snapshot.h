// The table as rows for status.
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/report/rows.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// "starting" "idle" "waiting" "running" "closing" "paused" "lost"
std::string state_of(const Device& device, const Job& job);
JobRow job_row(const Table& table, const Job& job, Nanos now);
Snapshot make_snapshot(const Table& table, Nanos now);

}  // namespace gpushare::sched
