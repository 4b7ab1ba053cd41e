// The list of reasons for which a job in line gets no lease now: each says why, and until when.
//
// Which problem it solves: whether a job may be chosen for a free lane, when the coordinator has to
// look again, and what `gpushare why` says are one question, as they are for the end of a lease
// (lease_claims.h). serve/choose.cpp passes over a job with an obstacle of its own, and has itself
// called when the obstacle may be over; report/explain.cpp says which obstacle it is.
//
// What it does not do: it names no order. Among the jobs without an obstacle choose.cpp and the
// policy's own rules decide (side_by_side.h, harvest.h). A job that is paused, suspended or behind
// others of its gang does not stand in line, so nothing is asked about it here.
//
// Rules only read. Each stands in obstacles.cpp with the reason why there is one.
#pragma once

#include <optional>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"
#include "csrc/sched/time/share_limit.h"

namespace gpushare::sched {

// What the rules look at: a job that stands in line, now. Table, lane and job must outlive it.
struct BeginCase {
  const Table& table;
  const Lane& lane;  // the job's
  const Job& job;
  Nanos now;
  // Limits on time that set the job back no further than so are no obstacle: everybody who is set
  // back less was looked at before.
  Setback allowed = Setback::kNone;
};

struct ObstacleRule;

struct Obstacle {
  std::optional<Nanos> until;  // then it is to be looked at again; nothing: a message will say so
  const ObstacleRule* rule = nullptr;
};

// What keeps the job from beginning now; of several obstacles the one that people are told.
// Nothing: it may be chosen.
std::optional<Obstacle> obstacle_to(const BeginCase& c);
// The obstacle of the job itself, without those that are about the lane and hold for everybody in
// its line.
std::optional<Obstacle> own_obstacle_to(const BeginCase& c);
// "gives 12.0 MiB to others first".
std::string text_of(const BeginCase& c, const Obstacle& obstacle);
// Whether other jobs of the job's user can clear it, by giving room.
bool is_for_user_to_clear(const Obstacle& obstacle);
// Whether the holder's boundary ends it.
bool is_over_at_boundary(const Obstacle& obstacle);

// Another job's request that waits until the last holder of the free lane parks and gives room.
// Null: the lane need not stay free for that.
const WaitingNeed* stays_free_for(const Table& table, const Lane& lane, Nanos now);
// "the lane stays free until 3 parks, since 5 waits for room". pre: it does.
std::string stays_free_text(const Lane& lane, const WaitingNeed& need);

}  // namespace gpushare::sched
