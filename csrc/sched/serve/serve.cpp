// What follows every step, in the order in which the parts may claim what is free:
//
// 1. While the coordinator recovers after a restart nobody is granted anything: not all jobs have
//    said what they hold.
// 2. Books are brought up to date: the transfer rate, pauses that are over, suspended leases, the
//    jobs' lanes, limits that were lowered, gangs that come to stand in line.
// 3. Holders come first: room that was promised to follow their lease, then the Needs of those that
//    wait in an allocation. Others wait for their boundaries.
// 4. Then lanes are served: free ones before held ones, and of the free ones those that have been
//    short of room for longest first. What is left goes to a Need that takes only free room.
// 5. If nobody can go on, one Need fails.
// 6. The policy's own rules conclude: under `pack` the jobs that run are judged. The cores are
//    divided, and holders are asked for their leases.
// 7. The transfer rate is settled again: who waits has changed. Last, the times at which somebody
//    must be looked at again are noted.
//
// Each part takes what it claims from one RoomPool, so two parts never count on the same bytes.
#include "csrc/sched/serve/serve.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/limit.h"
#include "csrc/sched/memory/transfer.h"
#include "csrc/sched/serve/deny.h"
#include "csrc/sched/side_by_side/core_shares.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/lane_moves.h"
#include "csrc/sched/turns/program.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {
namespace {

// While somebody waits for room, notes when an unanswered Revoke is given up, and when a spared job
// may be asked again.
void watch_givers(Step& step) {
  const Device& device = step.device();
  if (!device.is_anybody_short()) return;
  const Table& table = std::as_const(step).table();
  for (const JobId id : table.jobs.kept().giving) {
    if (const auto by = table.gives_by(table.at(id), step.now())) step.due(*by);
  }
  for (const JobId id : JobRecords::Ids(table.jobs.kept().spared)) {
    const Job& job = table.at(id);
    if (job.room.spared_until <= step.now()) {
      step.table().at(id).room.spared_until = Nanos{};
    } else if (device.ledger.room(id) > Bytes{0}) {
      step.due(job.room.spared_until);
    }
  }
}

// A job that could not give, for a reason that may pass, is asked again later if somebody is short
// then (RoomRecord::asked_again_at).
void end_pauses(Step& step) {
  for (const JobId id : JobRecords::Ids(step.table().jobs.kept().asked_again)) {
    Job& job = step.table().at(id);
    if (step.now() >= *job.room.asked_again_at) {
      job.room.end_pause();
    } else if (step.device().is_anybody_short()) {
      step.due(*job.room.asked_again_at);
    }
  }
}

bool is_kept_out(const Lane& lane) { return lane.waiting.contains(lane.kept_out); }

// The order in which lanes are served. What comes free is for the first of them. 1. Free lanes from
// which a memory limit keeps a job, because the limit of its user is used up in another lane: the
// job that has waited longest first. 2. Free lanes whose next job is short of room: the one that
// has been short for longest first. 3. The other free lanes; where all lanes have one line, in the
// order of their first jobs. 4. Held lanes, which only give their waiters what is left.
std::vector<Lane*> by_claim(Table& table) {
  const Table& known = table;
  std::vector<Lane*> lanes;
  for (Lane& lane : table.device.lanes)
    lanes.push_back(&lane);
  const auto is_first = [&](const Lane& a, const Lane& b) {
    return table.device.has_one_line() && !a.waiting.empty() &&
           (b.waiting.empty() || *a.waiting.first() < *b.waiting.first());
  };
  std::stable_sort(lanes.begin(), lanes.end(), [&](const Lane* a, const Lane* b) {
    if (a->lease.has_value() != b->lease.has_value()) return !a->lease.has_value();
    if (is_kept_out(*a) != is_kept_out(*b)) return is_kept_out(*a);
    if (is_kept_out(*a)) {
      return known.at(a->kept_out).place.waiting_since < known.at(b->kept_out).place.waiting_since;
    }
    if (is_short_before(*a, *b) || is_short_before(*b, *a)) return is_short_before(*a, *b);
    // Ties go by the lane's number, as in memory_plan.cpp, or two lanes would take the same bytes
    // from each other.
    return !a->short_since().has_value() && is_first(*a, *b);
  });
  return lanes;
}

}  // namespace

void serve(Step& step) {
  Table& table = step.table();
  Device& device = step.device();
  if (table.is_recovering(step.now())) {
    step.due(table.recovery_ends);
    settle_gangs(step);
    deny_only_free_unseen(step);
    return;
  }
  table.expected.clear();
  const bool is_half_used = host_used(table).total() > table.options.host_budget.total() / 2;
  if (!is_half_used && !device.is_place_lacking) device.host_warning.clear();
  settle_transfer_rate(step);
  end_pauses(step);
  settle_suspended(step);
  place_jobs(step);
  hold_to_limits(step);
  settle_gangs(step);
  RoomPool pool = room_pool(table, step.now());
  for (Lane& lane : device.lanes)
    serve_owed(step, lane, pool);
  serve_needs(step, pool);
  for (const PolicyRule* const rule : device.policy->rules())
    rule->before_leases(step);
  for (Lane* const lane : by_claim(table))
    serve_lane(step, *lane, pool);
  serve_only_free(step, pool);
  break_deadlock(step);
  for (const PolicyRule* const rule : device.policy->rules())
    rule->after_leases(step);
  share_cores(step);
  say_programs(step);
  for (Lane& lane : device.lanes)
    ask_holder(step, lane);
  settle_transfer_rate(step);
  watch_givers(step);
}

}  // namespace gpushare::sched
