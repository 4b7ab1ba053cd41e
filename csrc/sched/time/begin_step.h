// Begins a step of the coordinator: the time since the step before is charged first, so that all
// that the step decides is by books of now.
#pragma once

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// `table` must outlive the step.
Step begin_step(Table& table, Nanos now, bool is_deadline);

}  // namespace gpushare::sched
