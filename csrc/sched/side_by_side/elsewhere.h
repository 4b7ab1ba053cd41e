// Who waits for a lane beyond its own line.
//
// Always: the jobs that its holder is to take turns with from its next boundary on (lane_moves.h),
// the first of a free lane that lacks room which is not on its way, and the first of one that is
// kept out by the limit of the holder's user.
//
// Under `pack`, where the jobs of all lanes are in one order, also those in the lines of held lanes
// that fit and may run beside the other holders: a free lane draws the first of them, if none of
// its own comes before that. So a lane's only job does not run all the time beside a full line.
#pragma once

#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// The keys of the jobs of other lines that count for this lane, in order. pre: the lane is held.
std::vector<OrderKey> waiting_elsewhere(const Table& table, const Lane& lane, Nanos now);
// The first of those keys that goes before the holder; 0: none does. Jobs of different lanes can be
// compared by priority only, except where all lanes have one line.
JobId first_elsewhere(const Table& table,
                      const Lane& lane,
                      const std::vector<OrderKey>& keys,
                      Nanos now);
// Moves the first job of all lines to the free lane, if it stands in another one. pre: all lanes
// have one line.
void draw_first(Step& step, Lane& lane);

}  // namespace gpushare::sched
