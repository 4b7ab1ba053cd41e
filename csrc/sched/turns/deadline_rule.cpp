// What policies that meet deadlines do beyond their order.
//
// A free lane is for a job with a deadline that would interrupt the chosen one at once: to begin an
// iteration in order to stop inside it would cost two switches. A held lane is asked for when a
// deadline needs it (time/headroom.h), and not sooner, since a quantum that is cut short costs one.
//
// Deadlines that ask for more time than there is are shed, the last ones first (shed_deadlines()).
//
// Where those that count ask for nearly all time, a job that comes to its turn by age alone would
// have one iteration, and would wait as long again. So after a job with a deadline, or with a high
// weight, which makes one, it has a turn (helping_long_waiters()).
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/policies/rule.h"
#include "csrc/sched/table/step.h"
#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/deadlines.h"
#include "csrc/sched/time/headroom.h"
#include "csrc/sched/turns/interrupt.h"

namespace gpushare::sched {
namespace {

class MeetingDeadlines final : public PolicyRule {
 public:
  void before_leases(Step& step) const override { shed_deadlines(step); }
  JobId choose(Step& step, Lane& lane, JobId chosen, const RoomPool& pool) const override {
    if (lane.due == chosen) return chosen;  // nobody would interrupt it
    const Table& table = std::as_const(step).table();
    const JobId urgent = urgent_before(table, lane, table.at(chosen), step.now(), pool);
    return urgent == JobId{0} ? chosen : urgent;
  }
  [[nodiscard]] bool may_interrupt(const Job& job) const override {
    return job.deadline() > Nanos{};
  }
  [[nodiscard]] std::optional<PolicyClaim> claim(const Table& table,
                                                 const Lane& lane,
                                                 Nanos now) const override {
    const auto urgent = headroom(table, lane, now);
    if (!urgent.has_value()) return std::nullopt;
    return PolicyClaim{urgent->ends, urgent->job};
  }
  [[nodiscard]] std::string text(const Table& table,
                                 const Lane& /*lane*/,
                                 const PolicyClaim& claim,
                                 Nanos /*now*/) const override {
    return fmt::format("{}: {} would be late", table.device.policy->name(), claim.by.value);
  }
};

class HelpingLongWaiters final : public PolicyRule {
 public:
  JobId choose(Step& step, Lane& lane, JobId chosen, const RoomPool& /*pool*/) const override {
    const Table& table = std::as_const(step).table();
    const Job& job = table.at(chosen);
    const Job* const last = table.find(lane.last_holder);
    // A deadline that is shed counts here: the job asks for more turns than others all the same.
    if (last == nullptr || (last->settings.deadline <= Nanos{} && last->settings.weight <= 1))
      return chosen;
    // The job is chosen because no deadline comes before it now, but the next one may come at once
    // and would end its lease. So half of the longest wait is as long as it waits for a whole turn.
    if (step.now() - job.place.waiting_since >= table.options.max_wait / 2)
      give_turn(table, lane, job);
    return chosen;
  }
};

}  // namespace

const PolicyRule& helping_long_waiters() {
  static const HelpingLongWaiters rule;
  return rule;
}

const PolicyRule& meeting_deadlines() {
  static const MeetingDeadlines rule;
  return rule;
}

}  // namespace gpushare::sched
