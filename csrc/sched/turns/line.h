// A job's place in the line of its lane.
#pragma once

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// pre: the job wants a lease, and is not in the line. One of a gang waits until it is to stand
// there.
void join_line(Step& step, Job& job);
void stand_in_line(Step& step, Job& job);
// Out of the line, if the job is in it; the job wants no lease any more.
void leave_line(Step& step, Job& job);
// pre: the job is in that lane's line.
void take_out_of_line(Lane& lane, JobId job);

}  // namespace gpushare::sched
