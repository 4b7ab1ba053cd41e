// Gives a free lane to a job: what happens when a lease begins.
//
// Which job gets the lane, and when, is decided in serve/serve_lane.cpp. Other jobs of its gang are
// granted their leases along with it in serve/grant_along.cpp.
#pragma once

#include "csrc/sched/memory/room.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Grants the lane to a job at its boundary, with the room that there is for it. pre: the lane is
// free, and the job waits for it.
void grant_with(Step& step, Lane& lane, Job& job, RoomPool& pool);
// Grants the lane to a job that was interrupted inside its iteration. pre: the same, and the job is
// inside.
void grant_inside(Step& step, Lane& lane, Job& job);

}  // namespace gpushare::sched
