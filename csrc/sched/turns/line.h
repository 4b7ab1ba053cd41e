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
// The job is paused, or its process suspended: one that stands in line waits aside.
void step_aside(Step& step, Job& job);
// That is over: one that waits aside comes to its line again, unless it is held up by the other.
void step_back(Step& step, Job& job);
// Out of that lane's line, if the job is in it.
void take_out_of_line(Lane& lane, JobId job);

}  // namespace gpushare::sched
