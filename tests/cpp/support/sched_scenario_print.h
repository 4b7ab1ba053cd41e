// What the coordinator said, as the indented lines of a scenario.
#pragma once

#include <string>

#include "csrc/sched/coordinator.h"
#include "csrc/sched/job/ready.h"

namespace gpushare::sched::testing {

std::string print(const Ready& ready);
std::string print(const Snapshot& snapshot);
std::string print(const Why& why);
// What jobs need and whether they fit.
std::string print_fit(const Snapshot& snapshot);

}  // namespace gpushare::sched::testing
