// One decision goes like this. Something has changed, or the rows want to be looked at. The arbiter
// asks the hosts with ranks (ask()). Their answers are what has changed there, and Looked at the
// end. When nobody owes an answer any more the rows decide (settle()), and what they order goes to
// the ranks' hosts.
//
// What may go wrong: a host does not answer for kSilent and is left, and the others go on. Hosts
// and ranks come and go in arbiter_hosts.cpp.
#include "csrc/arbiter/arbiter.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "csrc/base/check.h"

namespace gpushare::arbiter {
namespace {

// A host that owes an answer for so long is left.
constexpr Nanos kSilent = seconds(3);
// How often a host is asked that has no rank, so that both sides know that the other one lives.
constexpr Nanos kHeartbeat = seconds(1);
// The shortest time from one decision to the next, however often ranks change how they stand.
constexpr Nanos kLeastRound = millis(2);
// The number of a question that no decision waits for. Rounds count from 1.
constexpr std::uint64_t kNoRound = 0;

}  // namespace

Arbiter::Arbiter(host::RowOptions options, std::uint64_t epoch)
    : rows_(std::move(options)), epoch_(epoch) {}

// Hosts that are lost or silent are left first, so that no decision waits for them and no order
// goes to them. Then an open round is decided if all answers are here, and only then the next one
// may begin. Orders that are owed for other reasons, as to a rank that has come anew, are sent
// last.
Ready Arbiter::step(Nanos now) {
  Ready ready;
  forget_lost(now, ready);
  leave_silent(now, ready);
  const bool does_any_owe = std::any_of(hosts_.begin(), hosts_.end(), [this](const auto& each) {
    return each.second.owes == round_;
  });
  if (is_round_open_ && !does_any_owe) settle(now, ready);
  ask(now, ready);
  for (const JobId id : std::exchange(to_tell_, {}))
    if (const auto found = ranks_.find(id); found != ranks_.end()) send_order(found->second, ready);
  ready.close.insert(ready.close.end(), to_close_.begin(), to_close_.end());
  to_close_.clear();
  return ready;
}

// Begins a round, if one is due. A host that has said nothing for long is asked as well: its answer
// to an earlier round may still be on its way.
void Arbiter::ask(Nanos now, Ready& ready) {
  const bool is_wanted = is_due_ || (rows_at_.has_value() && now >= *rows_at_);
  const bool may_begin = !is_round_open_ && now >= round_at_ + kLeastRound;
  const bool begins = is_wanted && may_begin;
  if (is_wanted && !is_round_open_ && !may_begin) ready.look_by(round_at_ + kLeastRound);
  if (!is_wanted && rows_at_.has_value()) ready.look_by(*rows_at_);
  if (begins) {
    is_due_ = false;
    rows_at_.reset();
    is_round_open_ = true;
    round_at_ = now;
    ++round_;
  }
  bool does_any_owe = false;
  for (auto& [key, host] : hosts_) {
    if (!host.peer.has_value()) continue;
    const bool is_asked = begins && (!host.ranks.empty() || host.is_telling);
    const Nanos next = std::max(host.heard_at, host.asked_at) + kHeartbeat;
    if (is_asked || (!host.owes.has_value() && now >= next)) {
      if (!host.owes.has_value()) host.asked_at = now;
      host.owes = is_asked ? round_ : kNoRound;
      ready.messages.emplace_back(*host.peer, Look{*host.owes});
      does_any_owe = does_any_owe || is_asked;
    }
    ready.look_by(host.owes.has_value() ? host.asked_at + kSilent : std::max(next, now));
  }
  if (begins && !does_any_owe) settle(now, ready);
}

// pre: no host owes an answer to this round. Each order is kept, so that it can be sent again to a
// rank that was lost and comes back.
void Arbiter::settle(Nanos now, Ready& ready) {
  is_round_open_ = false;
  host::RowOrders orders = rows_.settle(now);
  std::move(orders.said.begin(), orders.said.end(), std::back_inserter(ready.said));
  rows_at_ = orders.look_at;
  if (rows_at_.has_value()) ready.look_by(std::max(*rows_at_, round_at_ + kLeastRound));
  for (host::RankOrder& order : orders.ranks) {
    Member& member = ranks_.at(order.job);
    member.order = std::move(order);
    send_order(member, ready);
  }
}

// A lost rank gets its order when its host is here again.
void Arbiter::send_order(const Member& member, Ready& ready) {
  const Host& host = hosts_.at(member.host);
  if (!host.peer.has_value() || member.lost_at.has_value() || !member.order.has_value()) return;
  Order order{.epoch = epoch_, .order = *member.order};
  order.order.job = member.job;
  ready.messages.emplace_back(*host.peer, std::move(order));
}

// One host that hangs must not hold up the rows of all others. It may join again when it lives.
void Arbiter::leave_silent(Nanos now, Ready& ready) {
  for (auto& [key, host] : hosts_) {
    if (!host.peer.has_value() || !host.owes.has_value() || now < host.asked_at + kSilent) continue;
    ready.close.emplace_back(*host.peer, "it does not answer");
    lose(key, host, now);
  }
}

void Arbiter::check_invariants() const {
  rows_.check_invariants();
  std::set<std::size_t> devices(free_devices_.begin(), free_devices_.end());
  GS_CHECK(devices.size() == free_devices_.size());
  for (const auto& [key, host] : hosts_) {
    for (const std::size_t device : host.numbers)
      GS_CHECK(device < num_devices_ && devices.insert(device).second, "device {}", device);
    if (host.peer.has_value()) GS_CHECK(peers_.at(*host.peer) == key, "host {}", key.first);
    for (const auto& [job, id] : host.ranks) {
      const Member& member = ranks_.at(id);
      GS_CHECK(member.host == key && member.job == job, "job {} of {}", job.value, key.first);
    }
  }
  GS_CHECK(devices.size() == num_devices_, "{} devices, {} known", num_devices_, devices.size());
  for (const auto& [id, member] : ranks_) {
    if (member.lost_at.has_value()) continue;
    GS_CHECK(hosts_.at(member.host).peer.has_value() &&
                 hosts_.at(member.host).ranks.at(member.job) == id,
             "rank {}", id.value);
  }
}

}  // namespace gpushare::arbiter
