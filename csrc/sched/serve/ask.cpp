#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/job/admission.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/serve/warning.h"
#include "csrc/sched/side_by_side/beside.h"
#include "csrc/sched/side_by_side/elsewhere.h"
#include "csrc/sched/side_by_side/side_by_side.h"
#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/gap_chance.h"
#include "csrc/sched/time/harvest.h"
#include "csrc/sched/time/headroom.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/ask_at_boundary.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/interrupt.h"
#include "csrc/sched/turns/lane_moves.h"

namespace gpushare::sched {
namespace {

// Somebody else's Need that only a boundary can meet.
const WaitingNeed* stuck_need(const Device& device, const Lane& lane) {
  for (const WaitingNeed& need : device.needs) {
    if (need.is_stuck && !lane.lease->is_held_by(need.job)) return &need;
  }
  return nullptr;
}

// As JobTable::num_turns, of those who wait elsewhere too.
std::size_t num_turns(const Lane& lane,
                      const std::vector<OrderKey>& elsewhere,
                      wire::Priority last,
                      std::uint32_t user) {
  std::set<std::pair<wire::Priority, std::uint32_t>> others;
  std::size_t num = lane.waiting.num_turns(last, user);
  for (const OrderKey& key : elsewhere) {
    if (key.priority > last) continue;
    if (key.user == user || others.emplace(key.priority, key.user).second) ++num;
  }
  return num;
}

// Of those who wait elsewhere, whom the holder does not go before: of different lanes, only
// priorities can be compared, but under `pack`. There the first of them have the lanes that were
// asked for already.
std::optional<OrderKey> first_elsewhere(const Table& table,
                                        const Lane& lane,
                                        const std::vector<OrderKey>& elsewhere,
                                        Nanos now) {
  const Device& device = table.device;
  if (!device.packs()) {
    if (elsewhere.empty()) return std::nullopt;
    const OrderKey first = elsewhere.front();
    if (table.at(lane.lease->job).settings.priority < first.priority) return std::nullopt;
    return first;
  }
  // But for one that has not come to a boundary for long.
  const auto is_coming = [&](const Lane& other) {
    return other.lease.has_value() && other.lease->is_asked && !is_lane_suspended(other) &&
           now - other.lease->asked_at < table.options.max_wait &&
           table.at(other.lease->job).is_connected;
  };
  const auto num_asked =
      static_cast<std::size_t>(std::count_if(device.lanes.begin(), device.lanes.end(), is_coming));
  if (elsewhere.size() <= num_asked) return std::nullopt;
  const OrderKey first = elsewhere[num_asked];
  if (requeued_key(table, lane, now) < first) return std::nullopt;
  return first;
}

// From the grant until the holder's memory is back: as it was the last time, until it is this time.
// Less than what may be lost to a switch anyway makes no quantum longer.
Nanos opening_time(const Table& table, const Lane& lane, const Job& holder) {
  const double allowed = to_seconds(lane.quantum) * table.options.switch_loss;
  return to_seconds(holder.usage.stall) > allowed ? holder.usage.stall : Nanos{};
}

void settle_quantum(const Table& table,
                    Lane& lane,
                    const Job& holder,
                    const std::vector<OrderKey>& elsewhere,
                    Nanos now) {
  const Device& device = table.device;
  // A job that starts is not made to wait for what others learn.
  const bool is_unknown = (is_learning(holder) && !holder.measured.remembered.has_value()) ||
                          (device.packs() && is_on_trial(table, now));
  const bool may_learn = is_unknown && stuck_need(device, lane) == nullptr;
  const std::uint32_t user = device.policy->key(holder).user;
  // Under `pack` all lanes serve those who wait for this one.
  const std::size_t at_a_time = device.packs() ? num_held(device) : 1;
  const auto turns = [&](wire::Priority last) {
    return (num_turns(lane, elsewhere, last, user) + at_a_time - 1) / at_a_time;
  };
  // What the switch to this lease cost counts at once: the average of a new job's is far behind. An
  // odd one rules this lease alone.
  const Nanos stall =
      std::max(holder.measured.stall, holder.usage.stall + holder.measured.handover);
  const bool is_usual_known = holder.measured.stall > Nanos{};
  const QuantumInput input{.stall = stall,
                           .usual_stall = is_usual_known ? holder.measured.stall : stall,
                           .iteration = holder.measured.iteration,
                           .overrun = holder.served.overrun,
                           .num_waiting = turns(wire::Priority::kOpportunistic),
                           .num_urgent = turns(wire::Priority::kInteractive),
                           .is_learning = may_learn};
  lane.quantum = quantum(table.quantum_limits(), input);
  lane.switch_loss = switch_loss(table.quantum_limits(), input);
  lane.quantum_ends = lane.lease->granted_at + opening_time(table, lane, holder) + lane.quantum;
}

// Looks at the holder's page at once when the first waiter comes, then every gap_poll.
void keep_looking(Step& step, Lane& lane, const Job& holder) {
  const Nanos now = step.now();
  if (!lane.is_watched) {
    lane.is_watched = true;
    lane.next_look = now;
  } else if (step.is_deadline() && now >= lane.next_look) {
    lane.next_look =
        look_for_gap(step.table(), lane, holder, now).value_or(now + step.table().options.gap_poll);
  }
}

bool is_in_long_gap(const Step& step, const Lane& lane, const Job& holder) {
  const Nanos elapsed = time_in_gap(lane, holder, step.now()).value_or(Nanos{});
  if (elapsed <= Nanos{0}) return false;
  return is_worth_harvesting(step.table(), lane, holder, elapsed)
      .value_or(elapsed > usual_gap_ends(step.device(), holder));
}

// Why the lease is asked back now; empty: it is not.
std::string reason_to_ask(const Step& step,
                          const Lane& lane,
                          const Job& holder,
                          const std::vector<OrderKey>& elsewhere,
                          const std::optional<HarvestEnd>& harvest,
                          const std::optional<Headroom>& urgent,
                          const std::optional<MakeWay>& way) {
  const Device& device = step.device();
  const Nanos now = step.now();
  if (holder.settings.is_paused()) {
    return fmt::format("paused by user {}", *holder.settings.paused_by);
  }
  const Setback back = setback(step.table(), holder);
  if (back == Setback::kBarred ||
      (back > Setback::kNone && is_time_wanted(step.table(), lane, back))) {
    return share_limit_text(step.table(), holder, now);
  }
  if (is_in_long_gap(step, lane, holder)) {
    return fmt::format("gap: {} for {}, allowed {}", holder.id.value,
                       to_string(*time_in_gap(lane, holder, now)),
                       to_string(usual_gap_ends(device, holder)));
  }
  if (floor_turn_ends(step.table(), lane, now).has_value()) return {};
  const auto due = class_due(step.table(), lane);
  if (due.has_value() && *due > holder.settings.priority) return floor_text(step.table(), *due);
  const auto lender = lender_back(step.table(), lane, now);
  if (lender.has_value() && now >= lender->at) {
    return fmt::format("{} is back, which has lent its gap", lender->job.value);
  }
  if (harvest.has_value() && now >= harvest->at) {
    return fmt::format("{}: {} {}", device.policy->name(), harvest->job.value,
                       lane.waiting.contains(harvest->job)
                           ? "waits"
                           : "is expected back before another iteration could end");
  }
  const std::optional<HarvestEnd> patience = patience_of_first(step.table(), lane);
  if (patience.has_value() && now >= patience->at) {
    return fmt::format("{}: {} has waited for {}", device.policy->name(), patience->job.value,
                       to_string(step.table().options.max_wait));
  }
  const JobId next = goes_on_next(step.table(), lane, now);
  if (next != JobId{0}) return fmt::format("{} goes on inside its iteration", next.value);
  const std::optional<Interruption> inside = patience_of_interrupted(step.table(), lane, now);
  if (inside.has_value() && now >= inside->at) {
    return fmt::format("{} has waited for {} inside its iteration", inside->job.value,
                       to_string(step.table().options.max_wait));
  }
  if (urgent.has_value() && now >= urgent->ends) {
    return fmt::format("{}: {} would be late", device.policy->name(), urgent->job.value);
  }
  if (way.has_value() && now >= way->at) return way->reason;
  if (now < lane.quantum_ends) return {};
  if (is_lane_closed(step.table(), lane)) {
    return fmt::format("lane {} is used no more", lane.id.value);
  }
  if (const WaitingNeed* need = stuck_need(device, lane)) {
    return fmt::format("quantum of {} is over, and {} waits for {} more room",
                       to_string(lane.quantum), need->job.value, to_string(need->bytes));
  }
  const auto other = first_elsewhere(step.table(), lane, elsewhere, now);
  if (other.has_value()) {
    return fmt::format("quantum of {} is over, {} in lane {} waits for it", to_string(lane.quantum),
                       other->id.value, step.table().at(other->id).place.in_lane.value);
  }
  const auto first = first_allowed(step.table(), lane, back);
  const Job after = holder.requeued(now - lane.lease->since, now);
  if (!first.has_value() || !(*first < order_key(device, after))) return {};
  return fmt::format("{}: quantum of {} is over, {} is first of {}", device.policy->name(),
                     to_string(lane.quantum), first->id.value, lane.waiting.size());
}

// Why the gap at the holder's next boundary is lent; empty: it is not.
std::string reason_to_lend(const Step& step, Lane& lane) {
  const auto chance = gap_chance(step.table(), lane, step.now());
  if (!chance.has_value()) return {};
  lane.lease->is_asked_for_gap = true;
  return fmt::format("its gap of {} is lent to {}: changing hands twice takes {}",
                     to_string(chance->gap), chance->next.value, to_string(chance->cost));
}

// Says once a lease that an iteration does not end. Before on_deadline the page was looked at; what
// is known in other steps may be old.
void warn_of_long_iteration(Step& step, Lane& lane, const Job& holder) {
  if (lane.lease->is_warned || holder.usage.is_in_gap) return;
  const Nanos since = std::max(holder.usage.changed_at, lane.lease->granted_at);
  const Nanos due = since + step.table().options.iteration_warning;
  const bool is_fresh = step.is_deadline() || holder.measured.observed_at == step.now();
  if (step.now() < due || !is_fresh) {
    step.due(due);
    step.look_at(holder.id);
    return;
  }
  lane.lease->is_warned = true;
  lane.lease->warned_since = since;
  step.decide(holder.id, "warn", warning_of(step.table(), lane, step.now()));
}

// Looks again when that is to be decided: how far the iteration is has to be known then.
std::optional<Interruption> urgent_now(Step& step, const Lane& lane, const Job& holder) {
  if (lane.lease->is_asked_inside) return std::nullopt;
  if (floor_turn_ends(step.table(), lane, step.now()).has_value()) return std::nullopt;
  const auto urgent = interruption(step.table(), lane, step.now());
  if (!urgent.has_value()) return urgent;
  const bool is_old =
      holder.measured.observed_at < step.table().at(urgent->job).place.waiting_since;
  const bool has_waited = holder.waited_in_iteration() >= step.table().options.max_wait;
  if (has_waited && (!is_old || step.is_deadline())) return std::nullopt;
  if (!has_waited && step.now() >= urgent->at) return urgent;
  step.due(urgent->at);
  if (is_old && !step.is_deadline()) step.due(step.now());
  step.look_at(holder.id);
  return std::nullopt;
}

void ask_inside(Step& step, Lane& lane, const Job& holder, const Interruption& urgent) {
  const std::string reason = fmt::format("{}: {} is not to wait for the end of the iteration",
                                         step.device().policy->name(), urgent.job.value);
  if (!lane.lease->is_asked) ask_at_boundary(step, lane, holder, reason);
  lane.lease->is_asked_inside = true;
  step.act({PageAction::Kind::kAskInside, holder.id, holder.served.term, 0});
  step.decide(holder.id, "ask_inside", reason);
}

}  // namespace

void ask_holder(Step& step, Lane& lane) {
  if (!lane.lease.has_value()) return;
  if (is_lane_suspended(lane)) {
    lane.is_watched = false;
    return;
  }
  const Job& holder = step.table().at(lane.lease->job);
  const std::vector<OrderKey> elsewhere = waiting_elsewhere(step.table(), lane, step.now());
  const std::optional<HarvestEnd> harvest = harvest_end(step.table(), lane, step.now());
  const std::optional<Headroom> urgent = headroom(step.table(), lane, step.now());
  const std::optional<MakeWay> way = make_way(step.table(), lane, step.now());
  const bool is_wanted = !lane.waiting.empty() || !elsewhere.empty() || harvest.has_value() ||
                         way.has_value() || stuck_need(step.device(), lane) != nullptr ||
                         holder.settings.is_paused() || is_lane_closed(step.table(), lane) ||
                         setback(step.table(), holder) == Setback::kBarred;
  if (const auto end = used_up_at(step.table(), holder, step.now())) step.due(*end);
  // One that has just come back has no page yet to be asked through.
  if (!is_wanted || !holder.is_connected || !holder.is_registered) {
    lane.is_watched = false;
    return;
  }
  const auto first = lane.waiting.first();
  if (first.has_value() && is_used_up(step.device(), step.table().at(first->id))) {
    step.due(earned_at(step.table(), step.table().at(first->id)));
  }
  const auto turn_ends = floor_turn_ends(step.table(), lane, step.now());
  if (!lane.lease->is_asked) {
    settle_quantum(step.table(), lane, holder, elsewhere, step.now());
    std::string reason = reason_to_ask(step, lane, holder, elsewhere, harvest, urgent, way);
    if (reason.empty() && !turn_ends.has_value()) reason = reason_to_lend(step, lane);
    if (!reason.empty()) ask_at_boundary(step, lane, holder, reason);
  }
  const auto interrupting = urgent_now(step, lane, holder);
  if (interrupting.has_value()) ask_inside(step, lane, holder, *interrupting);
  if (lane.lease->is_asked) return warn_of_long_iteration(step, lane, holder);
  keep_looking(step, lane, holder);
  warn_of_long_iteration(step, lane, holder);
  step.due(lane.next_look);
  step.look_at(holder.id);
  // Until its class' turn is over, nobody goes before the holder.
  if (turn_ends.has_value()) return step.due(*turn_ends);
  if (lane.quantum_ends > step.now()) step.due(lane.quantum_ends);
  if (harvest.has_value()) step.due(harvest->at);
  if (const auto due = class_due_at(step.table(), lane, step.now())) step.due(*due);
  const auto lender = lender_back(step.table(), lane, step.now());
  if (lender.has_value()) step.due(lender->at);
  if (const auto patience = patience_of_first(step.table(), lane)) step.due(patience->at);
  const auto inside = patience_of_interrupted(step.table(), lane, step.now());
  if (inside.has_value()) step.due(inside->at);
  if (urgent.has_value()) step.due(urgent->ends);
  if (way.has_value()) step.due(way->at);
}

}  // namespace gpushare::sched
