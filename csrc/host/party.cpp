// The order of parties, in three steps: who is set back least by limits on time, who is due by its
// class, and then the policy's own key. Users are left out of that key: here they are in the share
// by which a party's time is counted.
//
// What parties want of each other changes while they run: one more comes, and all shares fall. So
// time is charged piece by piece, each by the shares of those who wanted the devices then.
#include "csrc/host/party.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "csrc/base/check.h"

namespace gpushare::host {
namespace {

// The part of the device's time that the party is to have, beside all who want it.
double share_on(std::size_t device,
                const Party& party,
                const Parties& all,
                const sched::Users& users) {
  // The sums of the weights of all jobs that want the device, by user. A user's part is divided by
  // his.
  std::map<std::uint32_t, double> sums = party.weights;
  for (const Party* other : all) {
    if (other == &party || !other->wants || !other->is_on(device)) continue;
    for (const auto& [user, weight] : other->weights)
      sums[user] += weight;
  }
  double of_all = 0;
  for (const auto& [user, weight] : sums)
    of_all += users.of(user).weight;
  double share = 0;
  for (const auto& [user, weight] : party.weights)
    share += users.of(user).weight * weight / sums.at(user);
  return share > 0 ? share / of_all : 1;
}

// A gang needs all its devices, so it has no more than on the one that is wanted most.
double share_of(const Party& party, const Parties& all, const sched::Users& users) {
  double least = 1;
  for (const std::size_t device : party.devices)
    least = std::min(least, share_on(device, party, all, users));
  return least;
}

Nanos scaled(Nanos time, double by) {
  return Nanos{static_cast<std::int64_t>(static_cast<double>(time.value()) * by)};
}

}  // namespace

bool Party::shares_device_with(const Party& other) const {
  return std::any_of(devices.begin(), devices.end(),
                     [&](std::size_t device) { return other.is_on(device); });
}

Contest::Contest(const std::string& policy, double class_floor, sched::Users users)
    : class_floor_(class_floor), users_(std::move(users)) {
  auto made = sched::make_policy(policy);
  GS_CHECK(made.has_value(), "policy {}", policy);
  policy_ = std::move(*made);
}

// Machines count arrivals and turns each for itself, so times stand in for those numbers. Of those
// that have had as much, who waits longest is first.
sched::OrderKey Contest::key(const Party& party) const {
  sched::Standing standing = party.standing;
  // Sums of the same times differ in their last digits by how the times were cut.
  standing.virtual_time = std::round(party.virtual_time * 1e6) / 1e6;
  const Nanos since = policy_->sharing().by_user ? standing.waiting_since : standing.registered_at;
  standing.arrival = static_cast<std::uint64_t>(since.value());
  standing.queued = static_cast<std::uint64_t>(standing.waiting_since.value());
  sched::OrderKey key = policy_->key(standing);
  key.user = 0;
  return key;
}

bool Contest::goes_before(const Party& first, const Party& second) const {
  if (first.rank() != second.rank()) return first.rank() < second.rank();
  return key(first) < key(second);
}

// How the party would stand if it had one more turn first. A gang has `turn` on each of its
// devices, so it has been served as often.
Party Contest::after_turn(const Party& party, Nanos turn, const Parties& all, Nanos now) const {
  Party after = party;
  after.virtual_time += to_seconds(turn) / share_of(party, all, users_);
  after.standing.waiting_since = now;
  after.standing.served += turn * static_cast<std::int64_t>(party.devices.size());
  return after;
}

// How long `first` may run before `second` would be in front of it; nothing where it never will, or
// is already.
std::optional<Nanos> Contest::time_before(const Party& first,
                                          const Party& second,
                                          const Parties& all) const {
  if (first.setback < second.setback || first.is_due()) return std::nullopt;
  if (first.standing.priority < second.standing.priority) {
    if (class_floor_ <= 0) return std::nullopt;
    return scaled(std::max(second.turn - second.earned, Nanos{}), 1 / class_floor_);
  }
  if (!policy_->sharing().by_user) return std::nullopt;
  const double ahead = std::max(second.virtual_time - first.virtual_time, 0.0);
  return scaled(seconds(1), ahead * share_of(first, all, users_)) + micros(1);
}

void Contest::pass(const Parties& all, Nanos time) const {
  if (time <= Nanos{}) return;
  for (Party* party : all) {
    if (!party->runs) continue;
    if (policy_->sharing().by_user)
      party->virtual_time += to_seconds(time) / share_of(*party, all, users_);
    party->earned = std::max(party->earned - time, Nanos{});
  }
  if (has_classes(all)) earn(all, time);
}

// Where all who want a device are of one class, no time is earned, and the loops below are spared.
bool Contest::has_classes(const Parties& all) {
  const Party* first = nullptr;
  for (const Party* party : all) {
    if (!party->wants) continue;
    if (first == nullptr) first = party;
    if (party->standing.priority != first->standing.priority) return true;
  }
  return false;
}

// Of each class below one that runs only the first that waits earns, so that a class with many
// parties has no more than one with a single party.
void Contest::earn(const Parties& all, Nanos time) const {
  std::set<Party*> earners;
  for (const Party* above : all) {
    if (!above->runs) continue;
    std::map<wire::Priority, Party*> first;
    for (Party* party : all) {
      const bool is_below = party->wants && !party->runs &&
                            above->standing.priority < party->standing.priority &&
                            party->shares_device_with(*above);
      if (!is_below) continue;
      const auto [found, is_new] = first.try_emplace(party->standing.priority, party);
      if (!is_new && goes_before(*party, *found->second)) found->second = party;
    }
    for (const auto& [priority, party] : first)
      earners.insert(party);
  }
  // No more than two turns are saved up. A class that could not run for an hour would have the
  // device for minutes otherwise.
  for (Party* party : earners)
    party->earned = std::min(party->earned + scaled(time, class_floor_), party->turn * 2);
}

// A party that comes anew would have all devices to itself until it had caught up with the rest. So
// it begins where the one that has had least stands.
void Contest::lift(Party& party, const Party& self, const Parties& all) {
  std::optional<double> least;
  for (const Party* other : all) {
    if (other == &self || !other->wants || !other->shares_device_with(party)) continue;
    least = std::min(least.value_or(other->virtual_time), other->virtual_time);
  }
  if (least.has_value()) party.virtual_time = std::max(party.virtual_time, *least);
}

}  // namespace gpushare::host
