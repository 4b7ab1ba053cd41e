// What holds between two steps of the coordinator. For tests, and for builds with expensive checks.
#pragma once

#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// Aborts where something does not hold.
void check_invariants(const Table& table);

}  // namespace gpushare::sched
