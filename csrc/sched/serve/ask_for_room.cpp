// How others are asked for room, once it is planned who gives how much (memory_plan.h).
//
// 1. What nobody uses of the pools of lanes goes before live bytes of a job are copied.
// 2. Each job of the plan is sent a Revoke with the bytes that it is to give. It is also told how
//    much it may add to the host tier: what is free there, less what the jobs after it in the plan
//    are thought to need of it. So all of them can give what they are asked for.
// 3. What was asked for counts as expected from then on, so that it is not asked for twice.
#include "csrc/sched/serve/ask_for_room.h"

#include <cstddef>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/room_messages.h"
#include "csrc/sched/memory/user_room.h"

namespace gpushare::sched {
namespace {

// How much each job is thought to spill, within what is free of the host tier.
std::vector<Bytes> spills_of(const Table& table, const std::vector<Giving>& givings) {
  std::vector<Bytes> spills;
  Bytes host = host_free(table).total();
  for (const Giving& giving : givings) {
    spills.push_back(spill_of(table.device, table.at(giving.job), giving.bytes, host));
    host -= spills.back();
  }
  return spills;
}

}  // namespace

// Only what would be copied is taken from pools. What jobs can drop costs nothing, and goes first.
Bytes cut_before_copies(Step& step, const Job& claimant, Bytes missing, RoomPool& pool) {
  if (missing <= Bytes{0} || step.device().ledger.pools() == Bytes{0}) return {};
  const Bytes to_copy = MemoryPlan(step.table(), claimant.id, step.now()).beyond_drops(missing);
  return shrink_pools(step, claimant, to_copy, pool);
}

Bytes ask_for_room(Step& step,
                   JobId claimant,
                   Bytes deficit,
                   RoomPool& pool,
                   std::optional<std::uint32_t> of_user) {
  if (deficit <= Bytes{0}) return {};
  MemoryPlan plan(step.table(), claimant, step.now(), of_user);
  return ask_as_planned(step, plan, deficit, pool);
}

// Each job is told how much it may add to the host tier. What the jobs after it in the plan are
// thought to need of the tier is kept for them.
Bytes ask_as_planned(Step& step, MemoryPlan& plan, Bytes deficit, RoomPool& pool) {
  Bytes asked;
  Table& table = step.table();
  const std::vector<Giving> givings = plan.revokes(deficit);
  const std::vector<Bytes> spills = spills_of(table, givings);
  Bytes host_kept = std::accumulate(spills.begin(), spills.end(), Bytes{0});
  for (std::size_t i = 0; i < givings.size(); ++i) {
    host_kept -= spills[i];
    revoke_room(
        step, table.at(givings[i].job), givings[i].bytes, host_kept,
        fmt::format("for {}, which is short of {}", plan.claimant().value, to_string(deficit)));
    asked += givings[i].bytes;
  }
  pool.expected += asked;
  return asked;
}

// What the user's other jobs were asked for before is on its way, so it is not asked for again.
void ask_its_user(Step& step, const Job& job, Bytes growth, RoomPool& pool) {
  if (is_within_user_limit(step.device(), job, growth)) return;
  const Bytes missing = growth - left_to_user(step.device(), job) -
                        coming_from_user(step.table(), job.who.uid, step.now());
  ask_for_room(step, job.id, missing, pool, job.who.uid);
}

}  // namespace gpushare::sched
