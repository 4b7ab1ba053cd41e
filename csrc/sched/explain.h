// "Who am I waiting for?" in one line, for `gpushare status` and the job's own line after 5 s.
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table.h"

namespace gpushare::sched {

std::string explain(const Table& table, JobId job, Nanos now);

}  // namespace gpushare::sched
