// Which job a free lane serves next. Four rules are asked, from the strongest to the weakest:
//
// 1. A class that has earned its turn (class_floor.h) has its first job served.
// 2. Otherwise the first in line that may have the lane. A job may not if it owes an answer to a
//    Revoke, if its user's memory limit has no room for it, or if suspended jobs hold what it
//    needs. Jobs at no time limit come first, then those at their user's elastic limit, then those
//    at their own.
// 3. Under `pack` that job may have to wait for others, or another may run beside the holders
//    (side_by_side.h). Under `priority` an opportunistic job may have to wait for a guaranteed one
//    that is about to return (harvest.h).
// 4. A job that would interrupt the chosen one as soon as it ran is served in its place
//    (interrupt.h).
//
// The job chosen in an earlier step stays chosen, unless a job of a better class came: memory was
// moved for it already, and changing the choice would move it back.
#include "csrc/sched/serve/choose.h"

#include <utility>

#include "csrc/sched/job/admission.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/side_by_side/side_by_side.h"
#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/harvest.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/turns/interrupt.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {
namespace {

// The part of what it has earned that a class keeps where none of its jobs can have its turn now.
constexpr double kKept = 0.9;

// Lets the job be chosen if its user's limit has room for it. If not, others of the user are asked,
// and the job is passed over; after memory_wait it gets what there is.
bool let_grow(Step& step, Lane& lane, const Job& job, RoomPool& pool) {
  const Bytes growth = growth_of(step.device(), lane, job);
  if (is_within_user_limit(step.device(), job, growth)) return true;
  ask_its_user(step, job, growth, pool);
  const Nanos until = job.place.waiting_since + step.table().options.memory_wait;
  if (step.now() >= until) return true;
  step.due(until);
  if (lane.kept_out == JobId{0}) lane.kept_out = job.id;
  return false;
}

// The first in line that may be: the one chosen before stays chosen, so that a newcomer does not
// undo what was moved for it, unless the newcomer has a better priority. 0: none.
template <typename MayBe>
JobId first_in_line(const Table& table, const Lane& lane, const MayBe& may_be_next) {
  for (const OrderKey& key : lane.waiting) {
    if (!may_be_next(table.at(key.id))) continue;
    const auto chosen = lane.waiting.key_of(lane.next());
    const bool keeps_chosen = chosen.has_value() && chosen->priority <= key.priority &&
                              may_be_next(table.at(lane.next()));
    return keeps_chosen ? lane.next() : key.id;
  }
  return JobId{0};
}

// The first in line that does not owe a Released and may have the room that it needs, of those that
// their limits of the time set back least.
JobId choose_next(Step& step, Lane& lane, RoomPool& pool) {
  const Table& table = step.table();
  const auto can_be_next = [&](const Job& job) {
    if (!fits_beside_suspended(table, job)) {
      step.due(step.now() + table.options.memory_wait);
      return false;
    }
    return !job.room.revoke.has_value() && let_grow(step, lane, job, pool);
  };
  for (const Setback most : {Setback::kNone, Setback::kByUser, Setback::kByOwn}) {
    bool is_any_passed = false;
    const JobId next = first_in_line(table, lane, [&](const Job& job) {
      const Setback own = setback(table, job);
      if (own > most) {
        is_any_passed = true;
        step.due(earned_at(table, job));
      }
      return own == most && can_be_next(job);
    });
    if (next != JobId{0} || (most == Setback::kNone && !is_any_passed)) return next;
  }
  return JobId{0};
}

// The first of the class whose turn it is, if a class is due. A class whose jobs cannot run now is
// due again a little later.
JobId choose_for_floor(Step& step, Lane& lane, RoomPool& pool) {
  const Table& table = std::as_const(step).table();
  const auto due = class_due(table, lane);
  if (!due.has_value()) return JobId{0};
  const Job* const last = table.find(lane.last_holder);
  const JobId next = first_in_line(table, lane, [&](const Job& job) {
    return job.settings.priority == *due &&
           (last == nullptr || has_floor_after(step.device(), *last, job)) &&
           !job.room.revoke.has_value() && setback(table, job) == Setback::kNone &&
           fits_beside_suspended(table, job) && let_grow(step, lane, job, pool);
  });
  // If the class stayed due, the holder would be asked for its lease again at once.
  if (next == JobId{0}) lane.floor_earned.at(static_cast<std::size_t>(*due)) *= kKept;
  return next;
}

// The chosen job, or one that cannot wait for an iteration of it.
JobId choose_urgent(Step& step, const Lane& lane, JobId chosen, const RoomPool& pool) {
  if (chosen == JobId{0}) return chosen;
  const Table& table = std::as_const(step).table();
  const JobId urgent = urgent_before(table, lane, table.at(chosen), step.now(), pool);
  return urgent == JobId{0} ? chosen : urgent;
}

}  // namespace

JobId choose(Step& step, Lane& lane, RoomPool& pool) {
  lane.kept_out = JobId{0};
  lane.due = choose_for_floor(step, lane, pool);
  if (lane.due != JobId{0}) return lane.due;
  const JobId first = choose_beside(step, lane, choose_next(step, lane, pool));
  return choose_urgent(step, lane, choose_harvester(step, lane, first), pool);
}

}  // namespace gpushare::sched
