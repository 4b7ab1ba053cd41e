// Carries out where jobs are to take their turns (placement.h).
//
// A job is moved while it waits or is parked, holds no lease, and all it changed in its lane was
// heard. It keeps its place: it is as far ahead of its new lane's virtual time as it was of the old
// one's, which under `pack` is the same. Its membership goes along, and the other lane's slots come
// with its next LaneTable. A holder that is to be elsewhere stays until its lease ends, and is
// asked for it at its quantum's end if somebody waits there (elsewhere.h), or its lane is closed.
//
// A lane whose holder is suspended counts for nothing: another one is opened in its place, and
// closed when that holder has gone on.
#pragma once

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Plans anew, and moves who may be moved. Nothing on a device with one lane, unless its holder is
// suspended.
void place_jobs(Step& step);
// Whether the job may change its lane now: nothing of it has to be heard or moved first.
bool may_be_moved(const Device& device, const Job& job);
// Whether jobs are to leave the lane: the policy now has fewer, or it was opened while the holder
// of another one was suspended.
bool is_lane_closed(const Table& table, const Lane& lane);
// Moves the job to another lane, with its place in line, if it waits, and its membership in the
// pool. pre: it holds no lease.
void change_lane(Step& step, Job& job, LaneId to);

}  // namespace gpushare::sched
