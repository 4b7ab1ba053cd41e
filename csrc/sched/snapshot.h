// The table as rows for status.
#pragma once

#include "csrc/base/units.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/table.h"

namespace gpushare::sched {

Snapshot make_snapshot(const Table& table, Nanos now);

}  // namespace gpushare::sched
