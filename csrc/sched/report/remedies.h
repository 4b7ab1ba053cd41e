// What would let a job run sooner, as commands that a person can give: for `gpushare why`.
//
// Each change was tried on a copy of the job's record and with the policy's own order. One that
// would not help is not in the list.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/report/imagined_line.h"
#include "csrc/sched/table/lane.h"

namespace gpushare::sched {

// Appends a sentence for each remedy. pre: `line` is the lane's, as seen by the job.
void add_remedies(const Lane& lane,
                  const ImaginedLine& line,
                  Nanos now,
                  std::vector<std::string>& remedies);

}  // namespace gpushare::sched
