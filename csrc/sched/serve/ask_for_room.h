// Asks other jobs for room that somebody lacks: for all passes that find that memory is missing.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/serve/memory_plan.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Pools hold no bytes that anybody needs: before a live byte is copied to make `missing` bytes
// free, what of them nobody uses goes. Returns how much.
Bytes cut_before_copies(Step& step, const Job& claimant, Bytes missing, RoomPool& pool);

// Asks others for `deficit` bytes, as the plan says; how many of them may come. Also adds them to
// what `pool` expects.
Bytes ask_as_planned(Step& step, MemoryPlan& plan, Bytes deficit, RoomPool& pool);
// The same with a plan that is made now. Does nothing if nothing is missing. With a user, only jobs
// of that user are asked.
Bytes ask_for_room(Step& step,
                   JobId claimant,
                   Bytes deficit,
                   RoomPool& pool,
                   std::optional<std::uint32_t> of_user = {});
// Asks others of the job's user for what the user's limit lacks for the job to grow by so much.
void ask_its_user(Step& step, const Job& job, Bytes growth, RoomPool& pool);

}  // namespace gpushare::sched
