// The rules by which a holder is asked for its lease, in the order in which they are looked at.
//
// First come those that no turn of a class puts off: a person or a limit takes the lease away, or
// the holder does not use it. Then, unless the holder has its class' turn (class_floor.h), those
// for which a quantum is cut short: a class that is due, a job that comes back, waits too long, or
// would be late. Last come those that wait for the end of the quantum, and the gap that is lent. Of
// several that are due at once, the first is recorded as the reason, so the order is that in which
// a reader wants to hear them: what a person did, what a limit did, what a job waits for.
#include "csrc/sched/serve/lease_claims.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "csrc/sched/side_by_side/elsewhere.h"
#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/gap_chance.h"
#include "csrc/sched/time/harvest.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/interrupt.h"
#include "csrc/sched/turns/lane_moves.h"
#include "csrc/sched/turns/row.h"

namespace gpushare::sched {

// One rule. Both functions only read.
struct AskRule {
  std::optional<LeaseClaim> (*claim)(const AskCase& c);
  std::string (*text)(const AskCase& c, const LeaseClaim& claim);
  enum class Holds : std::uint8_t {
    kAlways,
    kOutsideClassTurn,  // not while the holder has its class' turn: nobody goes before it then
    kAfterQuantum       // nor before the holder's quantum is over
  };
  Holds holds = Holds::kOutsideClassTurn;
  bool lends_gap = false;
  bool is_for_ranks = false;  // it asks a rank of an open row too
};

namespace {

using MaybeClaim = std::optional<LeaseClaim>;

MaybeClaim due_now_if(const AskCase& c, bool is_due) {
  return is_due ? MaybeClaim(LeaseClaim{c.now, JobId{0}}) : std::nullopt;
}

// Of a rule that asks for one job at a known time.
template <typename JobAtTime>
MaybeClaim claim_of(const std::optional<JobAtTime>& found) {
  return found.has_value() ? MaybeClaim(LeaseClaim{found->at, found->job}) : std::nullopt;
}

// Of a rule that asks at a known time, for nobody in particular.
MaybeClaim claim_at(const std::optional<Nanos>& at) {
  return at.has_value() ? MaybeClaim(LeaseClaim{*at, JobId{0}}) : std::nullopt;
}

// Of a rule that asks for one job now; 0: it does not.
MaybeClaim due_now_for(const AskCase& c, JobId job) {
  return job != JobId{0} ? MaybeClaim(LeaseClaim{c.now, job}) : std::nullopt;
}

// A user who pauses his job wants the device back at the next boundary, and not when others come.
struct Paused {
  static MaybeClaim claim(const AskCase& c) { return due_now_if(c, c.holder.settings.is_paused()); }
  static std::string text(const AskCase& c, const LeaseClaim& /*claim*/) {
    return fmt::format("paused by user {}", *c.holder.settings.paused_by);
  }
};

// The row of its gang was closed, since a rank has ended or does not come: the devices are to be
// another gang's.
struct RowIsOver {
  static MaybeClaim claim(const AskCase& c) { return due_now_if(c, is_outside_row(c.holder)); }
  static std::string text(const AskCase& c, const LeaseClaim& /*claim*/) {
    return fmt::format("the row of gang {} is over", c.holder.who.of.gang);
  }
};

// Ranks of a gang on other devices wait inside their steps for the one that waits here.
struct RowIsOpen {
  static MaybeClaim claim(const AskCase& c) {
    return due_now_for(c, first_in_row(c.table, c.lane));
  }
  static std::string text(const AskCase& c, const LeaseClaim& claim) {
    return fmt::format("{} is next: {}", claim.by.value, c.table.at(claim.by).row->why);
  }
};

// Whoever set a limit on time counts on it: a holder that has used its share up makes way, at once
// where the limit is hard, and under an elastic limit as soon as somebody else wants the time.
struct OverItsShare {
  static MaybeClaim claim(const AskCase& c) {
    const Setback back = setback(c.table, c.holder);
    const bool is_over = back == Setback::kBarred ||
                         (back > Setback::kNone && is_time_wanted(c.table, c.lane, back));
    return due_now_if(c, is_over);
  }
  static std::string text(const AskCase& c, const LeaseClaim& /*claim*/) {
    return share_limit_text(c.table, c.holder, c.now);
  }
};

// A holder that loads data for long does not compute, and others are not to wait for that. Its
// usual gaps are left to it. Its page is looked at every gap_poll, so the time is not known before.
struct LongGap {
  static MaybeClaim claim(const AskCase& c) {
    const Nanos elapsed = time_in_gap(c.lane, c.holder, c.now).value_or(Nanos{});
    if (elapsed <= Nanos{0}) return {};
    const bool is_long = is_worth_harvesting(c.table, c.lane, c.holder, elapsed)
                             .value_or(elapsed > usual_gap_ends(c.table.device, c.holder));
    return due_now_if(c, is_long);
  }
  static std::string text(const AskCase& c, const LeaseClaim& /*claim*/) {
    return fmt::format("gap: {} for {}, allowed {}", c.holder.id.value,
                       to_string(*time_in_gap(c.lane, c.holder, c.now)),
                       to_string(usual_gap_ends(c.table.device, c.holder)));
  }
};

// A job of a lower class that waits below a busy higher one gets some turns all the same: its class
// is asked for as soon as it has earned one.
struct ClassIsDue {
  static MaybeClaim claim(const AskCase& c) {
    return claim_at(class_due_at(c.table, c.lane, c.now));
  }
  static std::string text(const AskCase& c, const LeaseClaim& /*claim*/) {
    const auto due = class_due(c.table, c.lane);
    return due.has_value() ? floor_text(c.table, *due) : "a class below its own is due";
  }
};

// A long job waits below a stream of shorter ones. Once it is overdue it gets turns all the same.
struct OverdueIsDue {
  static MaybeClaim claim(const AskCase& c) {
    return claim_of(overdue_turn(c.table, c.lane, c.now));
  }
  static std::string text(const AskCase& c, const LeaseClaim& claim) {
    return overdue_text(c.table.at(claim.by), c.now);
  }
};

// A job that lent the lane while it loaded data wants it back when it has the data, so that lending
// costs it next to nothing.
struct LenderIsBack {
  static MaybeClaim claim(const AskCase& c) {
    return claim_of(lender_back(c.table, c.lane, c.now));
  }
  static std::string text(const AskCase& /*c*/, const LeaseClaim& claim) {
    return fmt::format("{} is back, which has lent its gap", claim.by.value);
  }
};

// A job that was stopped inside its iteration for this holder's deadline goes on after the one
// iteration that the deadline was for.
struct InterruptedGoesOn {
  static MaybeClaim claim(const AskCase& c) {
    return due_now_for(c, goes_on_next(c.table, c.lane, c.now));
  }
  static std::string text(const AskCase& /*c*/, const LeaseClaim& claim) {
    return fmt::format("{} goes on inside its iteration", claim.by.value);
  }
};

// An interrupted job has its activations in memory and half an iteration behind it, so it waits for
// max_wait at most, whoever is before it.
struct InterruptedWaitsLong {
  static MaybeClaim claim(const AskCase& c) {
    return claim_of(patience_of_interrupted(c.table, c.lane, c.now));
  }
  static std::string text(const AskCase& c, const LeaseClaim& claim) {
    return fmt::format("{} has waited for {} inside its iteration", claim.by.value,
                       to_string(c.table.options.max_wait));
  }
};

// What the policy's own rules say (policies/rule.h): a guaranteed job returns under `priority`, a
// deadline would be missed, a set of jobs does not pay under `pack`. Each rule names its user.
struct OfPolicy {
  static MaybeClaim claim(const AskCase& c) {
    if (c.by_policy.empty()) return {};
    // The first rule that is due has its way; before that, the claim that is due first.
    const auto until = [&](const AskCase::OfRule& each) { return std::max(each.claim.at, c.now); };
    const auto& first = *std::ranges::min_element(c.by_policy, {}, until);
    return LeaseClaim{.at = first.claim.at,
                      .by = first.claim.by,
                      .of_policy = first.rule,
                      .may_lapse = first.claim.may_lapse};
  }
  static std::string text(const AskCase& c, const LeaseClaim& claim) {
    return claim.of_policy->text(c.table, c.lane, {claim.at, claim.by}, c.now);
  }
};

// The holder has its lease for a quantum, so that changing hands costs little of the time. Who is
// to have the lane then is decided then, by the rules that follow.
struct QuantumEnds {
  static MaybeClaim claim(const AskCase& c) {
    if (c.now >= c.lane.quantum_ends) return {};
    return LeaseClaim{c.lane.quantum_ends, JobId{0}};
  }
  static std::string text(const AskCase& c, const LeaseClaim& /*claim*/) {
    return fmt::format("quantum of {} is over", to_string(c.lane.quantum));
  }
};

// Jobs are to leave the lane: the policy has fewer lanes now, or the suspended holder whose place
// it took goes on. The holder has its quantum first.
struct LaneIsClosed {
  static MaybeClaim claim(const AskCase& c) {
    return due_now_if(c, is_lane_closed(c.table, c.lane));
  }
  static std::string text(const AskCase& c, const LeaseClaim& /*claim*/) {
    return fmt::format("lane {} is used no more", c.lane.id.value);
  }
};

// A job that stopped in an allocation goes on once the holder has parked, and gives what it may.
struct NeedIsStuck {
  static MaybeClaim claim(const AskCase& c) {
    const WaitingNeed* const need = stuck_need(c.table.device, c.lane);
    return due_now_for(c, need == nullptr ? JobId{0} : need->job);
  }
  static std::string text(const AskCase& c, const LeaseClaim& /*claim*/) {
    const WaitingNeed* const need = stuck_need(c.table.device, c.lane);
    return fmt::format("quantum of {} is over, and {} waits for {} more room",
                       to_string(c.lane.quantum), need->job.value, to_string(need->bytes));
  }
};

// Some jobs wait for this holder in the lines of other lanes (elsewhere.h), for its turns or for
// its room, and would not be served if only this lane's line counted.
struct WaitsElsewhere {
  static MaybeClaim claim(const AskCase& c) {
    return due_now_for(c, first_elsewhere(c.table, c.lane, c.elsewhere, c.now));
  }
  static std::string text(const AskCase& c, const LeaseClaim& claim) {
    return fmt::format("quantum of {} is over, {} in lane {} waits for it",
                       to_string(c.lane.quantum), claim.by.value,
                       c.table.at(claim.by).place.in_lane.value);
  }
};

// The turns themselves: whoever the policy puts before the holder, as if that queued again now, is
// next. If nobody is, the holder goes on, since a switch would serve nobody.
struct FirstInLine {
  static MaybeClaim claim(const AskCase& c) {
    const auto first = first_allowed(c.table, c.lane, setback(c.table, c.holder));
    if (!first.has_value() || !(*first < requeued_key(c.table, c.lane, c.now))) return {};
    return LeaseClaim{c.now, first->id};
  }
  static std::string text(const AskCase& c, const LeaseClaim& claim) {
    return fmt::format("{}: quantum of {} is over, {} is first of {}",
                       c.table.device.policy->name(), to_string(c.lane.quantum), claim.by.value,
                       c.lane.waiting.size());
  }
};

// A job that loads data between two iterations lends the lane for that time where another job's
// iteration fits in, or has its turn then anyhow. It is asked before its boundary, so that the lane
// is free when the gap begins.
struct GapIsLent {
  static MaybeClaim claim(const AskCase& c) {
    const auto chance = gap_chance(c.table, c.lane, c.now);
    if (!chance.has_value()) return {};
    return LeaseClaim{c.now, chance->next};
  }
  static std::string text(const AskCase& c, const LeaseClaim& claim) {
    const auto chance = gap_chance(c.table, c.lane, c.now);
    return fmt::format("its gap of {} is lent to {}: changing hands twice takes {}",
                       to_string(chance->gap), claim.by.value, to_string(chance->cost));
  }
};

// A class that has earned its turn keeps the lane until that is over, whoever waits.
struct ClassTurnEnds {
  static MaybeClaim claim(const AskCase& c) {
    return claim_at(floor_turn_ends(c.table, c.lane, c.now));
  }
  static std::string text(const AskCase& c, const LeaseClaim& /*claim*/) {
    const bool is_overdue = c.lane.lease->floor_turn == FloorTurn::kOfOverdue;
    return is_overdue ? "its turn as an overdue job is over" : "the turn of its class is over";
  }
};

template <typename Rule>
constexpr AskRule rule_of(AskRule::Holds holds) {
  return {Rule::claim, Rule::text, holds};
}

// About a gap, in which no other rank waits for this one inside a step.
template <typename Rule>
constexpr AskRule gap_rule_of(AskRule::Holds holds, bool lends_gap) {
  return {Rule::claim, Rule::text, holds, lends_gap, true};
}

constexpr auto kAlways = AskRule::Holds::kAlways;
constexpr auto kOutsideClassTurn = AskRule::Holds::kOutsideClassTurn;
constexpr auto kAfterQuantum = AskRule::Holds::kAfterQuantum;

// NEW_RULE: one line here, and one struct above that says which user needs it.
constexpr std::array kRules{
    rule_of<RowIsOver>(kAlways),
    rule_of<RowIsOpen>(kAlways),
    rule_of<Paused>(kAlways),
    rule_of<OverItsShare>(kAlways),
    gap_rule_of<LongGap>(kAlways, false),
    rule_of<ClassIsDue>(kOutsideClassTurn),
    rule_of<OverdueIsDue>(kOutsideClassTurn),
    rule_of<LenderIsBack>(kOutsideClassTurn),
    rule_of<InterruptedGoesOn>(kOutsideClassTurn),
    rule_of<InterruptedWaitsLong>(kOutsideClassTurn),
    rule_of<OfPolicy>(kOutsideClassTurn),
    rule_of<QuantumEnds>(kOutsideClassTurn),
    rule_of<LaneIsClosed>(kAfterQuantum),
    rule_of<NeedIsStuck>(kAfterQuantum),
    rule_of<WaitsElsewhere>(kAfterQuantum),
    rule_of<FirstInLine>(kAfterQuantum),
    gap_rule_of<GapIsLent>(kOutsideClassTurn, true),
};
// Until then only the first ones of the list count.
constexpr AskRule kClassTurn = rule_of<ClassTurnEnds>(kAlways);

// The last of the rules that hold now.
AskRule::Holds held_now(const AskCase& c, bool is_class_turn) {
  if (is_class_turn) return kAlways;
  return c.now < c.lane.quantum_ends ? kOutsideClassTurn : kAfterQuantum;
}

}  // namespace

AskCase::AskCase(const Table& in, const Lane& of, Nanos at)
    : table(in),
      lane(of),
      holder(in.at(of.lease->job())),
      now(at),
      elsewhere(waiting_elsewhere(in, of, at)) {
  for (const PolicyRule* const rule : in.device.policy->rules())
    if (const auto claim = rule->claim(in, of, at)) by_policy.push_back({rule, *claim});
}

// The rules are asked only if this is true. A rule that asks for somebody who stands in none of
// these places needs a line here too.
bool AskCase::is_wanted() const {
  return !lane.waiting.empty() || !elsewhere.empty() || !by_policy.empty() ||
         stuck_need(table.device, lane) != nullptr || holder.settings.is_paused() ||
         is_lane_closed(table, lane) || setback(table, holder) == Setback::kBarred ||
         is_outside_row(holder);
}

// A rank whose row is open ends its lease by itself, at the same step as the others of its gang. If
// it were asked before, they would wait for it inside their next step. Its gaps may be used, and
// then it has the lane again before all others.
LeaseClaims claims_on(const AskCase& c) {
  LeaseClaims claims;
  const MaybeClaim turn = kClassTurn.claim(c);
  if (turn.has_value()) claims.later.push_back({turn->at, turn->by, &kClassTurn});
  const AskRule::Holds held = held_now(c, turn.has_value());
  for (const AskRule& rule : kRules) {
    if (rule.holds > held || (is_in_row(c.holder) && !rule.is_for_ranks)) continue;
    MaybeClaim claim = rule.claim(c);
    if (!claim.has_value()) continue;
    claim->rule = &rule;
    if (claim->at <= c.now) return {.due = claim, .later = {}};
    claims.later.push_back(*claim);
  }
  return claims;
}

std::string text_of(const AskCase& c, const LeaseClaim& claim) {
  return claim.rule->text(c, claim);
}

bool lends_gap(const LeaseClaim& claim) { return claim.rule->lends_gap; }

const WaitingNeed* stuck_need(const Device& device, const Lane& lane) {
  for (const WaitingNeed& need : device.needs) {
    if (need.is_stuck && !lane.lease->is_held_by(need.job)) return &need;
  }
  return nullptr;
}

}  // namespace gpushare::sched
