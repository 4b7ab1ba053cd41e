// Asks for a lease back.
#pragma once

#include <string>

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Asks all who hold the lane for their lease at their next boundary. pre: nobody has.
void ask_at_boundary(Step& step, Lane& lane, const Job& holder, const std::string& reason);

}  // namespace gpushare::sched
