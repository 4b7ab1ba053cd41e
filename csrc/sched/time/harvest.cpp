// When an opportunistic job may use the lane of a guaranteed one that is away.
//
// A guaranteed job's return is forecast from its last gaps. An opportunistic iteration may begin
// if, by that forecast, it would be in the way of no more than kMostRisk of the returns. The length
// of the iteration is taken with its tail, and stretched by how badly earlier forecasts went
// (harvest_share). The same forecast says when a running opportunistic job is asked: just before an
// iteration that begins then would be in the way.
//
// If nothing is known of the return, opportunistic jobs run until the guaranteed one wants the
// lane. If that made it wait, the lane rests for a part of the time after each of them.
//
// harvest_share is raised slowly by good returns and lowered fast by bad ones, so that the harm to
// a guaranteed job stays at kAllowedHarm, however wrong the forecasts are.
#include "csrc/sched/time/harvest.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/memory/room.h"
#include "csrc/sched/plans/quantum.h"
#include "csrc/sched/time/scaled.h"
#include "csrc/sched/time/share_limit.h"

namespace gpushare::sched {
namespace {

// How many waiters that do not fit are passed over. Those behind them have longer iterations still,
// or wait.
constexpr std::size_t kMostHarvesters = 16;
// A lane changes hands in less.
constexpr Nanos kMargin = millis(1);
// How exactly the beginning of a gap is seen where it is expected.
constexpr Nanos kGapLook = millis(1);
// An iteration is expected to end from this part of its time on, and not before that one.
constexpr double kMaybeOver = 0.9;
constexpr double kSurelyBusy = 0.5;
// Between the two, the page is looked at after each such part of the iteration.
constexpr double kEarlyLook = 0.05;
// Before them it is looked at after this time at the latest: some iterations are much shorter than
// those before.
constexpr Nanos kMostBlind = millis(100);

// An iteration begins where it is in the way of no more than this part of the returns. An iteration
// that is makes them wait half of its length: of the time that is used, 2 %.
constexpr double kMostRisk = 0.04;

constexpr double kHarmWeight = 0.125;  // of the last return in their moving average
constexpr double kLeastShare = 0.05;
constexpr double kIncrease = 0.02;
constexpr double kDecrease = 0.8;
constexpr Nanos kMostRest = seconds(1);

bool is_opportunistic(const Job& job) {
  return job.settings.priority == wire::Priority::kOpportunistic;
}

// The guaranteed jobs that are away from the lane and may come back to it. A job that has used up
// its share of the time is not among them, since it goes before nobody.
template <typename Visit>
void for_each_away(const Table& table, const Lane& lane, const Visit& visit) {
  for (const JobId id : table.jobs.kept().guaranteed) {
    const Job& job = table.at(id);
    const bool is_holder = lane.lease.has_value() && lane.lease->job() == id;
    const bool is_away = job.place.in_lane == lane.id && !job.place.is_waiting() && !is_holder;
    if (is_away && !is_used_up(table.device, job)) visit(job);
  }
}

// An iteration, a long one, and the two changes of hands around it.
Nanos time_to_run(const Job& job) { return job.long_iteration() + job.measured.stall + kMargin; }

// How long a run counts beside a job that had to wait for earlier ones: the less its forecasts are
// trusted, the longer.
Nanos trusted_run(Nanos run, const Job& away) {
  return scaled(run, 1 / away.measured.harvest_share);
}

struct Return {
  JobId job;
  Nanos at;     // what begins from then on, and takes so long, may be in its way
  Nanos later;  // if it is not back by then, it is expected later
};

// The first that what takes `run` may be in the way of; nothing: nothing is known of any.
std::optional<Return> next_return(const Table& table, const Lane& lane, Nanos run, Nanos now) {
  std::optional<Return> next;
  for_each_away(table, lane, [&](const Job& job) {
    const Nanos elapsed = now - job.measured.gap_since;
    const auto from = job.measured.gaps.risky_from(elapsed, trusted_run(run, job), kMostRisk);
    if (!from.has_value()) return;
    const Nanos since = job.measured.gap_since;
    const Return own{job.id, since + *from, since + *job.measured.gaps.next_over(elapsed)};
    next = std::ranges::min(next.value_or(own), own, {}, &Return::at);
  });
  return next;
}

Nanos patience_end(const Table& table, const Job& job) {
  return job.place.waiting_since + table.options.max_wait;
}

// No bytes have to move for it: while they do, the gap passes.
bool has_room(const Device& device, const Job& job) {
  const Bytes rise = needed_room(job, device.ledger.capacity()) - device.ledger.room(job.id);
  return rise <= std::max(device.ledger.free(), Bytes{0});
}

// A guaranteed job that is giving what it was asked for is first as soon as it has given it. Until
// when the lane is kept for that; nothing: there is no such job.
std::optional<Nanos> first_gives_by(const Table& table, const Lane& lane, Nanos now) {
  const auto first = first_with_time(table, lane, wire::Priority::kGuaranteed);
  if (!first.has_value()) return std::nullopt;
  const Job& job = table.at(first->id);
  return table.gives_by(job, now);
}

// The runs that were found to be in the way of a return: one that is as long is too.
class TooLong {
 public:
  [[nodiscard]] bool covers(Nanos run) const { return shortest_.has_value() && run >= *shortest_; }
  void add(Nanos run) { shortest_ = std::min(shortest_.value_or(run), run); }

 private:
  std::optional<Nanos> shortest_;
};

// Whether what takes `run` can be over before a guaranteed job returns. Not if nothing is known of
// the return.
bool is_over_in_time(const Table& table, const Lane& lane, Nanos run, Nanos now) {
  const auto in_way = next_return(table, lane, run, now);
  return in_way.has_value() && in_way->at > now;
}

// Whether the opportunistic waiter could have the free lane now, for all but the guaranteed jobs.
bool may_harvest(const Table& table, const Job& job, JobId next) {
  if (!is_opportunistic(job) || job.room.revoke.has_value()) return false;
  return job.id == next || setback(table, job) != Setback::kBarred;
}

// The first opportunistic waiter who has waited for max_wait, or whose iteration is over in time
// and has its room. 0: nobody yet; says when to look again.
JobId first_harvester(Step& step, const Lane& lane, JobId next) {
  const Table& table = step.table();
  const Nanos now = step.now();
  TooLong too_long;
  std::size_t num_tried = 0;
  for (const OrderKey& key : lane.waiting) {
    const Job& job = table.at(key.id);
    if (!may_harvest(table, job, next)) continue;
    if (now >= patience_end(table, job)) return key.id;
    const Nanos run = time_to_run(job);
    const bool is_in_time = !too_long.covers(run) && is_over_in_time(table, lane, run, now);
    if (is_in_time && has_room(step.device(), job)) return key.id;
    if (!is_in_time) too_long.add(run);
    step.due(patience_end(table, job));
    if (++num_tried == kMostHarvesters) break;
  }
  return JobId{0};
}

// The first waiter of the free lane who may have it now: `next` or, where the guaranteed job is
// back before an iteration of that could end, another opportunistic one. 0: nobody yet; says when
// to look again.
JobId choose_harvester(Step& step, Lane& lane, JobId next) {
  const Table& table = step.table();
  if (!is_opportunistic(table.at(next))) return next;
  const Nanos now = step.now();
  if (const auto gives_by = first_gives_by(table, lane, now)) {
    step.due(*gives_by);
    return JobId{0};
  }
  const auto back = next_return(table, lane, time_to_run(table.at(next)), now);
  if (!back.has_value() && now >= lane.rest_until) return next;
  const JobId other = first_harvester(step, lane, next);
  if (other != JobId{0}) return other;
  if (!back.has_value()) {
    step.due(lane.rest_until);
    step.wait(next, lane.wait_reason, "the lane rests: guaranteed jobs had to wait for it");
    return JobId{0};
  }
  step.due(std::max(back->later, now + Nanos{1}));
  step.wait(next, lane.wait_reason,
            fmt::format("the lane is kept for {}, which is expected back before an iteration could "
                        "end",
                        back->job.value));
  return JobId{0};
}

// When the opportunistic holder is to be asked for its lease, for a guaranteed job's sake.
std::optional<PolicyClaim> harvest_end(const Table& table, const Lane& lane, Nanos now) {
  const Job& holder = table.at(lane.lease->job());
  if (const auto first = first_with_time(table, lane, wire::Priority::kGuaranteed)) {
    return PolicyClaim{now, first->id};
  }
  const auto back = next_return(table, lane, time_to_run(holder), now);
  if (!back.has_value()) return std::nullopt;
  return PolicyClaim{std::max(back->at, lane.lease->granted_at()), back->job};
}

// When the guaranteed holder is to be asked for its lease, since an opportunistic job that is first
// has waited for max_wait. Otherwise one whose iterations fit into no gap would never run.
std::optional<PolicyClaim> patience_of_first(const Table& table, const Lane& lane) {
  const auto first = first_with_time(table, lane);
  // Others are before it, and wait for the holder themselves.
  if (!first.has_value() || first->priority != wire::Priority::kOpportunistic) return std::nullopt;
  return PolicyClaim{patience_end(table, table.at(first->id)), first->id};
}

// Only what opportunistic jobs cost is counted: the last holder was one of them, and no limit on
// time kept the guaranteed job away. Shares rise by a little and fall by a part, so that they find
// the largest share with which the harm stays allowed.
void note_return(const Table& table, const Lane& lane, Job& job, Nanos now) {
  if (!job.settings.is_guaranteed()) return;
  // While its share of the time was used up, the job waited for that and not for the lane.
  const Nanos since = std::max(job.place.waiting_since, within_limits_since(table, job, now));
  const Nanos waited = now - since;
  const Nanos period = (job.place.waiting_since - job.measured.gap_since) + job.measured.iteration;
  const Job* const last_holder = table.find(lane.last_holder);
  const bool is_by_harvest =
      lane.last_holder != job.id && last_holder != nullptr && is_opportunistic(*last_holder);
  const double harm =
      is_by_harvest ? to_seconds(waited) / to_seconds(std::max(period, kMargin)) : 0;
  job.measured.harvest_harm += kHarmWeight * (harm - job.measured.harvest_harm);
  if (job.measured.harvest_harm > kAllowedHarm) {
    job.measured.harvest_share = std::max(job.measured.harvest_share * kDecrease, kLeastShare);
    job.measured.harvest_harm = 0;  // measured anew
  } else if (harm <= kAllowedHarm) {
    job.measured.harvest_share = std::min(job.measured.harvest_share + kIncrease, 1.0);
  }
}

// The less the forecasts of the jobs that are away can be trusted, the longer the lane rests.
void note_harvest(const Table& table, Lane& lane, const Job& holder, Nanos now) {
  if (!is_opportunistic(holder)) return;
  double share = 1;
  for_each_away(table, lane,
                [&](const Job& job) { share = std::min(share, job.measured.harvest_share); });
  const Nanos used = now - lane.lease->granted_at();
  lane.rest_until = now + std::min(scaled(used, 1 / share - 1), kMostRest);
}

// A guaranteed job that serves requests must not wait for the iteration of an opportunistic one. So
// that one begins only if it is over in time, and is asked before the guaranteed job is back.
class Harvesting final : public PolicyRule {
 public:
  void note_begin(const Table& table, const Lane& lane, Job& job, Nanos now) const override {
    note_return(table, lane, job, now);
  }
  void note_end(const Table& table, Lane& lane, const Job& holder, Nanos now) const override {
    note_harvest(table, lane, holder, now);
  }
  JobId choose(Step& step, Lane& lane, JobId chosen, const RoomPool& /*pool*/) const override {
    return choose_harvester(step, lane, chosen);
  }
  [[nodiscard]] std::optional<PolicyClaim> claim(const Table& table,
                                                 const Lane& lane,
                                                 Nanos now) const override {
    const Job& holder = table.at(lane.lease->job());
    if (is_opportunistic(holder)) return harvest_end(table, lane, now);
    return holder.settings.is_guaranteed() ? patience_of_first(table, lane) : std::nullopt;
  }
  [[nodiscard]] std::string text(const Table& table,
                                 const Lane& lane,
                                 const PolicyClaim& claim,
                                 Nanos /*now*/) const override {
    const std::string who = fmt::format("{}: {}", table.device.policy->name(), claim.by.value);
    if (!is_opportunistic(table.at(lane.lease->job()))) {
      return fmt::format("{} has waited for {}", who, to_string(table.options.max_wait));
    }
    if (lane.waiting.contains(claim.by)) return who + " waits";
    return who + " is expected back before another iteration could end";
  }
};

}  // namespace

const PolicyRule& harvesting() {
  static const Harvesting rule;
  return rule;
}

bool is_harvested(const Device& device, const Job& holder) {
  return device.policy->has(harvesting()) && holder.settings.is_guaranteed();
}

bool gets_only_gaps(const Device& device, const Job& holder, wire::Priority priority) {
  return priority == wire::Priority::kOpportunistic && is_harvested(device, holder);
}

std::optional<bool> is_worth_harvesting(const Table& table,
                                        const Lane& lane,
                                        const Job& holder,
                                        Nanos elapsed) {
  if (!is_harvested(table.device, holder) || holder.measured.gaps.empty()) return std::nullopt;
  if (!holder.measured.gaps.next_over(elapsed).has_value()) return std::nullopt;
  TooLong too_long;
  std::size_t num_tried = 0;
  for (const OrderKey& key : lane.waiting) {
    const Job& job = table.at(key.id);
    // Others take turns with the holder in any case.
    if (!is_opportunistic(job)) return std::nullopt;
    const Nanos run = trusted_run(time_to_run(job) + holder.measured.stall + kMargin, holder);
    const bool fits =
        !too_long.covers(run) && holder.measured.gaps.risky_from(elapsed, run, kMostRisk) > elapsed;
    if (fits) return true;
    too_long.add(run);
    if (++num_tried == kMostHarvesters) break;
  }
  return false;
}

// A gap is worth little if it is seen late, and each look costs a wake-up. So the page is looked at
// often where an iteration is expected to end, and seldom before.
std::optional<Nanos> look_for_gap(const Table& table,
                                  const Lane& lane,
                                  const Job& holder,
                                  Nanos now) {
  if (!is_harvested(table.device, holder)) return std::nullopt;
  if (lane.waiting.num_of(wire::Priority::kOpportunistic) == 0) return std::nullopt;
  const Nanos soon = now + std::min(kGapLook, table.options.gap_poll);
  if (holder.usage.is_in_gap || holder.measured.observed_at < lane.next_look) return soon;
  const Nanos since = std::max(holder.usage.changed_at, lane.lease->granted_at());
  const Nanos expected = since + scaled(holder.measured.iteration, kMaybeOver);
  const Nanos next = std::max(since + scaled(holder.measured.iteration, kSurelyBusy),
                              now + scaled(holder.measured.iteration, kEarlyLook));
  return std::clamp(std::min(next, expected), soon, now + kMostBlind);
}

}  // namespace gpushare::sched
