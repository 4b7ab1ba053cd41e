// How gangs and single jobs stand as parties (party.h), and who has to make room for whom.
//
// A gang is one party, whatever the number of its ranks. Its class is the lowest of its ranks'
// classes and its weight the smallest, so no rank gains anything for the others. A limit on time
// that binds one rank binds all: they wait for each other anyway.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "csrc/host/gang_rows.h"

namespace gpushare::host {

// Time is charged to those who ran until now. Then all stand as they were reported since.
//
// What a party has had and earned is kept here alone, and is carried over to its new standing. Who
// did not want a device before and wants one now begins at the others' level, so that nobody saves
// up turns by staying away.
void GangRows::pass_time(Nanos now) {
  parties_.clear();
  for (auto& [name, gang] : gangs_)
    parties_.push_back(&gang.party);
  for (Singles& singles : singles_)
    parties_.push_back(&singles.party);
  const Nanos time = now - settled_at_.value_or(now);
  contest_.pass(parties_, time);
  earn_overdue(time, now);
  settled_at_ = now;
  const auto update = [&](Party& party, Party seen) {
    seen.virtual_time = party.virtual_time;
    seen.earned = seen.wants ? party.earned : Nanos{};
    seen.has_turn = party.has_turn;
    if (seen.wants && !party.wants) Contest::lift(seen, party, parties_);
    party = std::move(seen);
  };
  // By service nothing is kept that changes without news.
  const bool is_all_new = !contest_.is_by_service();
  for (auto& [name, gang] : gangs_)
    if (is_all_new || gang.has_news) update(gang.party, party_of(gang));
  for (std::size_t device = 0; device < singles_.size(); ++device) {
    Singles& singles = singles_[device];
    if (is_all_new || std::exchange(singles.has_news, false))
      update(singles.party, party_of(singles, device, now));
  }
  // This begins the turn of single jobs, of which one has its lease by now. The turn of a gang
  // begins in open().
  if (overdue_.has_value() && overdue_->party->runs) begin_overdue_turn(*overdue_->party, now);
  end_overdue_turn(now);
  // With time a party of a lower class becomes due.
  is_line_new_ = is_line_new_ || is_all_new || Contest::has_classes(parties_);
}

// A gang as one party. What ranks say is joined so that no rank gains by it: the lowest class, the
// smallest weight, the slowest iteration, the largest number of iterations to go. The deadline is
// the earliest one, as all of them must be met.
Party GangRows::party_of(const Gang& gang) const {
  Party party;
  party.devices = gang.party.devices;
  party.standing = gang.ranks.begin()->second.seen.standing;
  sched::Standing& whole = party.standing;
  whole.id = gang.ranks.begin()->first;
  whole.waiting_since = gang.waits_since;
  whole.served = {};
  for (const auto& [job, rank] : gang.ranks) {
    const sched::Standing& own = rank.seen.standing;
    party.setback = std::max(party.setback, rank.seen.setback);
    whole.priority = std::max(whole.priority, own.priority);
    whole.weight = std::min(whole.weight, own.weight);
    whole.registered_at = std::min(whole.registered_at, own.registered_at);
    if (own.deadline > Nanos{} && (whole.deadline <= Nanos{} || own.deadline < whole.deadline))
      whole.deadline = own.deadline;
    whole.iteration = std::max(whole.iteration, own.iteration);
    whole.iterations_to_go = std::max(whole.iterations_to_go, own.iterations_to_go);
    whole.served += own.served;
  }
  party.weights[gang.ranks.begin()->second.seen.gang.first] = whole.weight;
  party.turn = slice(gang);
  stand(gang, party);
  return party;
}

// A row that is closing still has its devices, so it counts as running, and as wanting them.
void GangRows::stand(const Gang& gang, Party& party) {
  party.runs = gang.state != State::kWaiting;
  party.wants = party.runs || wants_row(gang);
}

// If nobody is in line, the standing is that of a job with a lease, which would stand in line from
// now on.
Party GangRows::party_of(const Singles& singles, std::size_t device, Nanos now) const {
  Party party;
  party.standing = singles.seen.first.value_or(sched::Standing{});
  if (!singles.seen.is_in_line) party.standing.waiting_since = now;
  party.weights = singles.seen.weights;
  party.devices = {device};
  party.setback = singles.seen.setback;
  party.runs = singles.seen.has_lease;
  party.wants = singles.seen.first.has_value();
  party.turn = options_.least_slice;
  return party;
}

// The counts are of gangs that wait for a row, so that is_wanted_by_others() need not look at all
// gangs for each row.
void GangRows::count_wanting() {
  std::fill(wanting_.begin(), wanting_.end(), 0);
  for (const auto& [name, gang] : gangs_)
    if (wants_row(gang)) add_to_wanting(gang, 1);
}

// `num` is 1 where a gang comes to want a row, and -1 where its row opens. So the counts stay right
// within one settle().
void GangRows::add_to_wanting(const Gang& gang, int num) {
  for (const std::size_t device : gang.party.devices)
    wanting_[device] += num;
}

// Another gang that wants one of its devices, or a single job in line there.
bool GangRows::is_wanted_by_others(const Gang& gang) const {
  // The counts include the gang's own wish, which is no reason to make way.
  const int own = wants_row(gang) ? 1 : 0;
  return std::any_of(gang.party.devices.begin(), gang.party.devices.end(), [&](std::size_t device) {
    return singles_[device].party.wants || wanting_[device] > own;
  });
}

// Whether somebody who wants one of its devices goes first when the row has come to its end. By
// service, whoever has more to run waits until the first has ended. If it is not known how long
// that takes, the first makes way after a slice, and is compared with the others anew.
bool GangRows::must_end(const Gang& gang, Nanos now) const {
  if (gang.party.setback == sched::Setback::kBarred) return true;
  if (contest_.is_by_service())
    return is_wanted_by_others(gang) && !(gang.is_first && gang.is_length_known());
  // The gang is compared as it will stand when it has made the steps that it still has.
  const std::uint64_t left = gang.stop_at - std::min(gang.most_steps(), gang.stop_at);
  const Party after = contest_.after_turn(gang.party, gang.time_of(left), parties_, now);
  return std::any_of(parties_.begin(), parties_.end(), [&](const Party* other) {
    return other != &gang.party && other->wants && other->shares_device_with(after) &&
           contest_.goes_before(*other, after);
  });
}

Nanos GangRows::Gang::iteration() const {
  Nanos longest;
  for (const auto& [job, rank] : ranks)
    longest = std::max(longest, rank.seen.iteration);
  return longest;
}

// Ranks come to the end of a step together, so the longest gap is the gang's.
Nanos GangRows::Gang::gap() const {
  Nanos longest;
  for (const auto& [job, rank] : ranks)
    longest = std::max(longest, rank.seen.gap);
  return longest;
}

// However many steps, it is no more than that of so many: the caller looks again.
Nanos GangRows::Gang::time_of(std::uint64_t steps) const {
  constexpr std::uint64_t kMost = 100'000;
  return iteration() * static_cast<std::int64_t>(std::min(steps, kMost));
}

// No row may end before a step that a rank has made already.
std::uint64_t GangRows::Gang::most_steps() const {
  std::uint64_t most = 0;
  for (const auto& [job, rank] : ranks)
    most = std::max(most, rank.steps());
  return most;
}

}  // namespace gpushare::host
