// When the holder of a lane is asked for its lease back, and when that is looked at again.
//
// 1. If nobody wants the lane, the holder goes on, and its page is not watched. But while a rank
//    waits for its gang's row, the page is looked at now and then: which of the two has less to run
//    is asked by the rows of the host.
// 2. Its quantum is settled anew, from who waits now.
// 3. If a rule's claim is due (lease_claims.h), the holder is asked for its lease at its next
//    boundary, once a lease.
// 4. If a job is too urgent even for that, the holder is asked inside its iteration (interrupt.h).
// 5. Otherwise its page is looked at every gap_poll, so that a gap is seen soon after it begins.
//    When the next claim is due, the coordinator is called again.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/job/admission.h"
#include "csrc/sched/serve/lease_claims.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/serve/warning.h"
#include "csrc/sched/side_by_side/beside.h"
#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/harvest.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/turns/ask_at_boundary.h"
#include "csrc/sched/turns/interrupt.h"
#include "csrc/sched/turns/row.h"

namespace gpushare::sched {
namespace {

// Like JobTable::num_turns, but with the jobs that wait for this lane in other lines.
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

// The time from the grant until the memory of the holder is back: as it was the last time, until it
// is known for this time. It makes a quantum longer only if it is more than may be lost to a switch
// anyway.
Nanos opening_time(const Table& table, const Lane& lane, const Job& holder) {
  const double allowed = to_seconds(lane.quantum) * table.options.switch_loss;
  return to_seconds(holder.usage.stall) > allowed ? holder.usage.stall : Nanos{};
}

// Other jobs may wait than in the last step, so the quantum is computed anew while the lease lasts,
// and its end may move both ways. It counts from the grant; a turn that was interrupted brings
// along the time that it has had.
void settle_quantum(const Table& table,
                    Lane& lane,
                    const Job& holder,
                    const std::vector<OrderKey>& elsewhere,
                    Nanos now) {
  const Device& device = table.device;
  // A job that starts is not made to wait for what others learn.
  const bool is_unknown = (is_learning(holder) && !holder.measured.remembered.has_value()) ||
                          device.policy->is_learning(table, now);
  const bool may_learn = is_unknown && stuck_need(device, lane) == nullptr;
  const std::uint32_t user = device.policy->key(holder.standing()).user;
  // All lanes serve a common line, so several of its turns are had at a time.
  const std::size_t at_a_time = device.has_one_line() ? num_held(device) : 1;
  const auto turns = [&](wire::Priority last) {
    return (num_turns(lane, elsewhere, last, user) + at_a_time - 1) / at_a_time;
  };
  // The cost of the switch to this lease counts at once, because a new job's average lags behind.
  // An odd one rules this lease alone.
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
  // If this time did not count, a job that is interrupted often would keep its lane for long.
  const Nanos left = std::max(lane.quantum - lane.lease->turn_before, Nanos{});
  lane.quantum_ends = lane.lease->granted_at() + opening_time(table, lane, holder) + left;
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

// A length that is known is off by an eighth at most between two looks. For a holder that does not
// say its length a look would tell nothing.
void look_for_rows(Step& step, const Job& holder) {
  if (!holder.has_page() || holder.row.has_value() || !is_row_wanted(step.table())) return;
  const Standing standing = holder.standing();
  if (standing.iterations_to_go <= 0) return;
  const Nanos rest = is_length_known(standing)
                         ? Nanos{std::llround(remaining_seconds(standing) / 8 * 1e9)}
                         : Nanos{0};
  const Nanos due = holder.measured.observed_at + std::max(rest, step.table().options.gap_poll);
  step.due(std::max(due, step.now()));
  step.look_at(holder.id);
}

// Says once a lease that an iteration does not end. Before on_deadline the page was looked at; what
// is known in other steps may be old.
void warn_of_long_iteration(Step& step, Lane& lane, const Job& holder) {
  if (lane.lease->is_warned || holder.usage.is_in_gap) return;
  const Nanos since = std::max(holder.usage.changed_at, lane.lease->granted_at());
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

// A lease that is asked for inside its iteration is asked for at the boundary too: the job may come
// to that first.
void ask_inside(Step& step, Lane& lane, const Job& holder, const Interruption& urgent) {
  const std::string reason = fmt::format("{}: {} is not to wait for the end of the iteration",
                                         step.device().policy->name(), urgent.job.value);
  if (!lane.lease->is_asked()) ask_at_boundary(step, lane, holder, reason);
  lane.lease->is_asked_inside = true;
  step.act({PageAction::Kind::kAskInside, holder.id, holder.served.term, 0});
  step.decide(holder.id, "ask_inside", reason);
}

}  // namespace

// The quantum and the rules matter until the lease is asked back; a job that cannot wait, and an
// iteration that does not end, also after that.
void ask_holder(Step& step, Lane& lane) {
  if (!lane.lease.has_value()) return;
  if (is_lane_suspended(lane)) {
    lane.is_watched = false;
    return;
  }
  const AskCase c(step.table(), lane, step.now());
  if (const auto end = used_up_at(c.table, c.holder, c.now)) step.due(*end);
  // A holder that has just reconnected has no page yet through which it could be asked.
  if (!c.is_wanted() || !c.holder.has_page()) {
    lane.is_watched = false;
    return look_for_rows(step, c.holder);
  }
  const auto first = lane.waiting.first();
  if (first.has_value() && is_used_up(step.device(), c.table.at(first->id))) {
    step.due(earned_at(c.table, c.table.at(first->id)));
  }
  LeaseClaims claims;
  if (!lane.lease->is_asked()) {
    settle_quantum(c.table, lane, c.holder, c.elsewhere, c.now);
    claims = claims_on(c);
    if (claims.due.has_value()) {
      lane.lease->is_asked_for_gap = lends_gap(*claims.due);
      ask_at_boundary(step, lane, c.holder, text_of(c, *claims.due));
    }
  }
  const auto interrupting = urgent_now(step, lane, c.holder);
  if (interrupting.has_value()) ask_inside(step, lane, c.holder, *interrupting);
  if (lane.lease->is_asked()) return warn_of_long_iteration(step, lane, c.holder);
  keep_looking(step, lane, c.holder);
  warn_of_long_iteration(step, lane, c.holder);
  step.due(lane.next_look);
  step.look_at(c.holder.id);
  for (const LeaseClaim& claim : claims.later)
    step.due(claim.at);
}

}  // namespace gpushare::sched
