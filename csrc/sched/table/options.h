// Makes a table without jobs from the options.
#pragma once

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// errors: kInvalidArgument, with the name of the option, its value and what is allowed.
Result<Table> make_table(const CoordinatorOptions& options, Nanos now);
// Opens as many lanes as the policy of the device puts jobs in.
void open_lanes(Table& table, Nanos now);

}  // namespace gpushare::sched
