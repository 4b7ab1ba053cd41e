// A trace: a table of jobs as comma-separated values, the other form of a simulation's jobs.
//
// The first line names the columns, in any order; a unit may follow after `_` (`submit_s`,
// `peak_mib`), else each value has its own (`3s`, `500MiB`). Blank lines and lines that begin with
// `#` are skipped; there is no quoting, since no value needs it. docs/simulator.md has the columns.
#pragma once

#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/sim/scenario/scenario.h"

namespace gpushare::sim {

// errors: kInvalidArgument, with the line's number, the column and the value.
Result<std::vector<JobSpec>> parse_trace(std::string_view text);

}  // namespace gpushare::sim
