// Which job a free lane serves next. A rank whose gang's row is open (turns/row.h) goes before all
// others: ranks on other devices wait for it. Otherwise four rules are asked, from the strongest
// to the weakest:
//
// 1. A class that has earned its turn (class_floor.h) has its first job served.
// 2. Otherwise the first in line that may have the lane. A job with an obstacle of its own
//    (obstacles.h) is passed over. Jobs at no time limit come first, then those at their user's
//    elastic limit, then those at their own.
// 3. If the overdue jobs of that job's class have earned a turn (class_floor.h), the one that was
//    overdue first is served in its place.
// 4. The policy's own rules may put another job in its place, or let nobody begin (rule.h). Under
//    `pack` that job may have to wait for others, or another may run beside the holders
//    (side_by_side.h). Under `priority` an opportunistic job may have to wait for a guaranteed one
//    that is about to return (harvest.h). A job with a deadline that would interrupt the chosen one
//    as soon as it ran is served in its place (interrupt.h), unless the chosen one has waited for
//    long under `deadline` (deadline_rule.cpp).
//
// The job chosen in an earlier step stays chosen, unless a job of a better class came: memory was
// moved for it already, and changing the choice would move it back.
#include "csrc/sched/serve/choose.h"

#include <utility>

#include "csrc/sched/job/admission.h"
#include "csrc/sched/serve/ask_for_room.h"
#include "csrc/sched/serve/obstacles.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/turns/row.h"

namespace gpushare::sched {
namespace {

// The part of what it has earned that a class, or the overdue jobs, keep where none of them can
// have the turn now.
constexpr double kKept = 0.9;

// Lets the job be chosen if it has no obstacle of its own, beside limits on time that the caller
// allows for. If it has one, notes when to look again, and asks whoever can clear it.
bool let_be_next(Step& step, Lane& lane, const Job& job, Setback allowed, RoomPool& pool) {
  const auto obstacle = own_obstacle_to({step.table(), lane, job, step.now(), allowed});
  if (!obstacle.has_value()) return true;
  if (obstacle->until.has_value()) step.due(*obstacle->until);
  if (is_for_user_to_clear(*obstacle)) {
    ask_its_user(step, job, growth_of(step.device(), lane, job), pool);
    if (lane.kept_out == JobId{0}) lane.kept_out = job.id;
  }
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

// The first in line without an obstacle, of those that their limits of the time set back least.
JobId choose_next(Step& step, Lane& lane, RoomPool& pool) {
  const Table& table = step.table();
  for (const Setback most : {Setback::kNone, Setback::kByUser, Setback::kByOwn}) {
    bool is_any_passed = false;
    const JobId next = first_in_line(table, lane, [&](const Job& job) {
      const Setback own = setback(table, job);
      if (own > most) {
        is_any_passed = true;
        step.due(earned_at(table, job));
      }
      return own == most && let_be_next(step, lane, job, most, pool);
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
  const JobId next = first_in_line(table, lane, [&](const Job& job) {
    return job.settings.priority == *due && may_have_floor(table, lane, job) &&
           setback(table, job) == Setback::kNone &&
           let_be_next(step, lane, job, Setback::kNone, pool);
  });
  // If the class stayed due, the holder would be asked for its lease again at once.
  if (next == JobId{0}) lane.earned.of_class.at(static_cast<std::size_t>(*due)) *= kKept;
  return next;
}

// In place of the chosen job, the one of its class that is overdue for the longest time and may
// run, if overdue jobs are due. If none of them may, they are due again a little later.
JobId choose_overdue(Step& step, Lane& lane, JobId chosen, RoomPool& pool) {
  if (chosen == JobId{0}) return chosen;
  const Table& table = std::as_const(step).table();
  const wire::Priority priority = table.at(chosen).settings.priority;
  if (overdue_job(table, lane, priority, step.now()) == JobId{0}) return JobId{0};
  for (const auto& [at, id] : lane.waiting.overdue(priority)) {
    if (at > to_seconds(step.now())) break;
    const Job& job = table.at(id);
    if (setback(table, job) == Setback::kNone && let_be_next(step, lane, job, Setback::kNone, pool))
      return id;
  }
  lane.earned.of_overdue.at(static_cast<std::size_t>(priority)) *= kKept;
  return JobId{0};
}

// The chosen job, as far as the policy's own rules agree, or another one that they name.
JobId choose_by_policy(Step& step, Lane& lane, JobId chosen, const RoomPool& pool) {
  for (const PolicyRule* const rule : step.device().policy->rules()) {
    if (chosen == JobId{0}) break;
    chosen = rule->choose(step, lane, chosen, pool);
  }
  return chosen;
}

}  // namespace

// A rank that was asked for memory before its row was opened gives that first. Nobody else has the
// lane meanwhile, since the other ranks wait for this one.
//
// A class that has earned a turn, and an overdue job that has, go before all that the policy says.
// Otherwise a policy could starve them.
JobId choose(Step& step, Lane& lane, RoomPool& pool) {
  lane.kept_out = lane.due = JobId{0};
  if (const JobId rank = first_in_row(step.table(), lane); rank != JobId{0}) {
    const bool owes_room = step.table().at(rank).room.revoke.has_value();
    return owes_room ? JobId{0} : rank;
  }
  const JobId of_class = choose_for_floor(step, lane, pool);
  const JobId chosen = of_class != JobId{0} ? of_class : choose_next(step, lane, pool);
  const JobId overdue = choose_overdue(step, lane, chosen, pool);
  lane.due = overdue != JobId{0} ? overdue : of_class;
  return lane.due != JobId{0} ? lane.due : choose_by_policy(step, lane, chosen, pool);
}

}  // namespace gpushare::sched
