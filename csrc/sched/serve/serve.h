// What follows each message and each deadline: room for Needs, leases for waiting jobs, the
// question to the holder for its lease, and when to look again.
#pragma once

#include "csrc/sched/memory/room.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// All passes, in the order that serve.cpp gives: those below are passes, or are called by several.
void serve(Step& step);

// serve_lane.cpp: what is free of the room that follows the lane's lease goes to its holder.
void serve_owed(Step& step, Lane& lane, RoomPool& pool);
// serve_needs.cpp: answers the Needs that can be met now, asks others to give for the rest.
void serve_needs(Step& step, RoomPool& pool);
// serve_needs.cpp: grants the step's Need for free room what is left of it now, or denies it. Last,
// when all others have claimed what they wait for.
void serve_only_free(Step& step, RoomPool& pool);
// While recovering nobody knows what is free.
void deny_only_free_unseen(Step& step);
// serve_lane.cpp: if the lane is free, settles the room of the first waiter and grants it a lease.
void serve_lane(Step& step, Lane& lane, RoomPool& pool);
// ask.cpp: asks the holder for its lease, if one of the rules says so (lease_claims.h).
void ask_holder(Step& step, Lane& lane);

// grant_along.cpp, for serve_lane(): grants leases along with the lane's to jobs of its holder's
// gang that wait for that. pre: the lane is held.
void grant_along(Step& step, Lane& lane, RoomPool& pool);
// grant_along.cpp: a holder of the lane waits inside its iteration, and is about to leave. One of
// its gang, for which it probably waits, is let in for one iteration, once in each lease.
void let_in_for_blocked(Step& step, Lane& lane);

}  // namespace gpushare::sched
