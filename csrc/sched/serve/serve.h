// What follows each message and each deadline: room for Needs, leases for waiting jobs, the
// question to the holder for its lease, and when to look again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "csrc/sched/memory/room.h"
#include "csrc/sched/serve/memory_plan.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// All passes, in the order that serve.cpp gives: those below are passes, or are called by several.
void serve(Step& step);

// Says that the host tier is full, once until it is half empty again: nobody can give to `job`,
// since what they would spill has no place. `so` says what follows for the job.
void say_host_full(Step& step, const Job& job, const std::string& so);
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

// Pools hold no bytes that anybody needs: before a live byte is copied to make `missing` bytes
// free, what of them nobody uses goes. Returns how much.
Bytes cut_before_copies(Step& step, const Job& claimant, Bytes missing, RoomPool& pool);

// Asks others for `deficit` bytes, as the plan says; how many of them may come. Also adds them to
// what `pool` expects.
Bytes ask_as_planned(Step& step, MemoryPlan& plan, Bytes deficit, RoomPool& pool);
// With a plan of this moment. With a user, of his jobs alone.
Bytes ask_for_room(Step& step,
                   JobId claimant,
                   Bytes deficit,
                   RoomPool& pool,
                   std::optional<std::uint32_t> of_user = {});
// Asks others of the job's user for what the user's limit lacks for the job to grow by so much.
void ask_its_user(Step& step, const Job& job, Bytes growth, RoomPool& pool);

}  // namespace gpushare::sched
