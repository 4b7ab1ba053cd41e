// Turns for a gang, or the single jobs of a device, that have waited for many times as long as they
// run, so that no stream of shorter ones starves them. The policy says from when on that is so
// (OrderKey::overdue_at), and only policies by service do. The scheduler of a single device gives
// its own jobs such turns too (csrc/sched/time/class_floor.h), but has none to give while a row is
// open there.
//
// One party at a time is looked at: of those that are overdue now and could run, the one of the
// best class, and in it the one that was overdue first. While it waits, and no better class runs on
// its devices, it earns class_floor of the time. With a turn earned it goes before all others of
// the line. The turn begins with its row, or with the lease of a single job, and ends after the
// length of a turn.
//
// Below a better class a party earns by its class (party.h), and no more by its age.
#include <algorithm>
#include <cstdint>
#include <tuple>

#include "csrc/host/gang_rows.h"

namespace gpushare::host {

// A party that limits on time set back would have no turn, and would keep others from theirs.
void GangRows::note_overdue(Party& party, double at, Nanos now) {
  // A job may say that it runs for thousands of years, which would not fit into Nanos.
  constexpr double kMostSeconds = 4e9;
  if (at > kMostSeconds || options_.class_floor <= 0) return;
  if (party.setback != sched::Setback::kNone) return;
  const auto place = [now](const Overdue& of) {
    return std::tuple(of.at > now, of.party->standing.priority, of.at);
  };
  const Overdue own{&party, Nanos{static_cast<std::int64_t>(at * 1e9)}};
  if (!overdue_.has_value() || place(own) < place(*overdue_)) overdue_ = own;
}

// Of `time` only the part counts in which the party was overdue. Below a better class that runs it
// earns by its class, and would be paid twice here.
void GangRows::earn_overdue(Nanos time, Nanos now) {
  if (!overdue_.has_value()) return;
  Party& party = *overdue_->party;
  if (!party.wants || party.runs || party.is_due()) return;
  const auto is_above = [&](const Party* other) {
    return other->runs && other->standing.priority < party.standing.priority &&
           other->shares_device_with(party);
  };
  if (std::any_of(parties_.begin(), parties_.end(), is_above)) return;
  const double seconds = to_seconds(std::clamp(now - overdue_->at, Nanos{}, time));
  party.earned += Nanos{static_cast<std::int64_t>(seconds * options_.class_floor * 1e9)};
  is_line_new_ = is_line_new_ || party.is_due();
}

// What was earned is spent as soon as the party runs (Contest::pass()), so the turn has an end of
// its own.
void GangRows::begin_overdue_turn(Party& party, Nanos now) {
  const bool is_its_turn =
      overdue_.has_value() && overdue_->party == &party && party.is_due() && !party.has_turn;
  if (!is_its_turn) return;
  if (overdue_turn_.has_value()) overdue_turn_->party->has_turn = false;
  party.has_turn = true;
  overdue_turn_ = OverdueTurn{&party, now + party.turn};
  is_line_new_ = true;
}

// The turn is over when its time is, or as soon as the party no longer runs: it may have ended.
void GangRows::end_overdue_turn(Nanos now) {
  if (!overdue_turn_.has_value()) return;
  if (now < overdue_turn_->ends && overdue_turn_->party->runs) return;
  overdue_turn_->party->has_turn = false;
  overdue_turn_.reset();
  is_line_new_ = true;
}

// The line changes when a turn ends, and when one is earned. A turn may be of no length, and the
// next look is a millisecond of earning ahead all the same.
void GangRows::look_for_overdue(Nanos now, RowOrders& orders) const {
  constexpr double kLeastSeconds = 1e-3;
  if (overdue_turn_.has_value()) orders.look_by(overdue_turn_->ends);
  if (!overdue_.has_value() || overdue_->party->is_due()) return;
  const double lacking = to_seconds(overdue_->party->turn - overdue_->party->earned);
  const double seconds = std::max(lacking, kLeastSeconds) / options_.class_floor;
  orders.look_by(std::max(now, overdue_->at) + Nanos{static_cast<std::int64_t>(seconds * 1e9)});
}

// overdue_ and overdue_turn_ point to parties, so this is called before one is destroyed or moved.
void GangRows::forget_overdue() {
  if (overdue_turn_.has_value()) overdue_turn_->party->has_turn = false;
  overdue_turn_.reset();
  overdue_.reset();
}

// The ranks of a gang run at the same time, so the gang has run for as long as one of them.
double GangRows::overdue_at(const Gang& gang) const {
  sched::Standing standing = gang.party.standing;
  standing.served = standing.served / static_cast<std::int64_t>(gang.ranks.size());
  standing.waiting_since = gang.stands_since();
  standing.waited = gang.waited;
  return contest_.overdue_at(standing);
}

// The time until its last rank came to its gate is the gang's own, so only what follows counts as
// waiting.
Nanos GangRows::Gang::stands_since() const {
  Nanos latest = waits_since;
  for (const auto& [job, rank] : ranks)
    latest = std::max(latest, rank.wants_since);
  return latest;
}

}  // namespace gpushare::host
