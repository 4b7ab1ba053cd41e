// Chooses the job that has a free lane next.
#pragma once

#include "csrc/sched/memory/room.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// The first of a class that is due (class_floor.h); else the first in line that may have the lane,
// or one that goes before it. 0: nobody yet; says when to look again.
JobId choose(Step& step, Lane& lane, RoomPool& pool);

}  // namespace gpushare::sched
