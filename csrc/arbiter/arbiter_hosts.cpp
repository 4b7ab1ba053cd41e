// Hosts and ranks that come, are lost, come back and are forgotten.
//
// A host is lost when its connection ends, or when another coordinator has taken its place. Its
// ranks then run to the step that they were told, and nothing is known of them. So they are
// reported to the rows as ranks of which nothing is known and that have no lease: their row ends
// without them, and none opens. When kGrace has passed they are forgotten.
//
// A rank comes back when its host reports it. If the host's coordinator is the same, the rank has
// the same job number, and a rank that is not reported has ended. Another coordinator gives other
// numbers. The rank is then known by its gang and its place in it. Ranks register there one after
// the other, so those that are not there yet have the whole time to come.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "csrc/arbiter/arbiter.h"
#include "csrc/base/check.h"
#include "csrc/wire/device_name.h"

namespace gpushare::arbiter {
namespace {

// How long a host that is lost has to come back. Its coordinator may have to be started again by
// its jobs, and the arbiter's own restart must not look like the end of all.
constexpr Nanos kGrace = seconds(30);

// Epochs begin with the nanoseconds since 1970, and rise by one now and then.
constexpr std::uint64_t kMostEpoch = std::uint64_t{1} << 62;

// The names in a list with commas; empty if one of them is none, or there are too many.
std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    if (!wire::is_device_name(names.back()) || names.size() > kMaxDevices) return {};
    begin = end + 1;
  }
  return names;
}

}  // namespace

// A host whose devices have changed counts as a new one, since its numbers of devices now mean
// other devices.
Result<std::string> Arbiter::join(PeerId peer, const Join& join, Nanos now) {
  if (peers_.contains(peer)) return fail(StatusCode::kProtocol, "a second join");
  const std::vector<std::string> names = split(join.devices);
  if (join.host.empty() || names.empty())
    return fail(StatusCode::kProtocol, "join without a host's name or with devices that are none");
  const HostKey key{join.host, join.place};
  if (join.seen_epoch > kMostEpoch) return fail(StatusCode::kProtocol, "an epoch of no arbiter");
  if (!hosts_.contains(key) && hosts_.size() >= kMaxHosts)
    return fail(StatusCode::kFailedPrecondition, fmt::format("{} hosts are here", kMaxHosts));
  Host& host = hosts_[key];
  if (host.peer.has_value()) {
    to_close_.emplace_back(*host.peer, "its host has connected anew");
    leave(*host.peer, now);
  }
  if (host.devices != join.devices) {
    for (const auto& [id, member] : std::map(ranks_))
      if (member.host == key) forget(id);
    free_devices_.insert(free_devices_.end(), host.numbers.begin(), host.numbers.end());
    host.numbers.clear();
    for (const std::string& name : names)
      host.numbers.push_back(new_device(join.host + "/" + name));
    host.devices = join.devices;
  }
  // Another coordinator numbers its jobs anew.
  if (host.instance != join.instance) host.ranks.clear();
  host.instance = join.instance;
  host.peer = peer;
  host.owes.reset();
  host.asked_at = host.heard_at = now;
  host.is_telling = true;
  peers_.emplace(peer, key);
  // Some arbiter has given orders of a higher epoch, so the host takes none of this one's.
  // If a host lies, all may come to have seen the last epoch there is. That one then goes on.
  if (join.seen_epoch > epoch_) epoch_ = std::min(join.seen_epoch + 1, kMostEpoch);
  is_due_ = true;
  return fmt::format("{} ({})", join.host, join.place);
}

// Any message shows that its host lives. What it changes is decided in the next round; only answers
// to the round that is open count for that one.
Status Arbiter::hear(PeerId peer, const HostMessage& message, Nanos now) {
  const auto found_peer = peers_.find(peer);
  if (found_peer == peers_.end()) return {StatusCode::kUnavailable, "it has been left"};
  const HostKey key = found_peer->second;
  Host& host = hosts_.at(key);
  host.heard_at = now;
  if (const auto* rank = std::get_if<Rank>(&message)) return note_rank(key, host, *rank, now);
  if (const auto* gone = std::get_if<Gone>(&message)) {
    const auto found = host.ranks.find(gone->job);
    if (found != host.ranks.end()) forget(found->second);
    is_due_ = is_due_ || !is_round_open_;
    return {};
  }
  if (const auto* singles = std::get_if<Singles>(&message)) {
    if (singles->device >= host.numbers.size()) return {StatusCode::kProtocol, "no such device"};
    return note_singles(host.numbers[singles->device], *singles, now);
  }
  if (const auto* looked = std::get_if<Looked>(&message)) {
    note_looked(key, host, looked->round);
    return {};
  }
  return {StatusCode::kProtocol, "a message that is not for one who has joined"};
}

// The arbiter notes itself since when a single job is first, since hosts have clocks of their own.
Status Arbiter::note_singles(std::size_t device, const Singles& said, Nanos now) {
  auto weights = read_weights(said.weights);
  if (!weights) return weights.error();
  auto& [first, since] = first_singles_[device];
  if (std::exchange(first, said.first) != said.first) since = now;
  sched::Singles singles{.weights = *std::move(weights), .first = {}};
  singles.setback = setback_of(said.contender);
  singles.has_lease = said.has_lease;
  singles.is_in_line = said.is_in_line;
  if (!singles.weights.empty()) {
    singles.first = standing_of(said.contender, since);
    singles.first->id = said.first;
    singles.seconds_to_run = sched::remaining_seconds(*singles.first);
  }
  rows_.note_singles(device, singles);
  is_due_ = is_due_ || !is_round_open_;
  return {};
}

Status Arbiter::note_rank(const HostKey& key, Host& host, const Rank& rank, Nanos now) {
  if (rank.report.device >= host.numbers.size() || rank.report.gang.second.empty())
    return {StatusCode::kProtocol, "a rank of no gang, or on no device"};
  if (!host.ranks.contains(rank.report.job) && host.ranks.size() >= kMaxRanksOfHost)
    return {StatusCode::kProtocol, fmt::format("more than {} ranks", kMaxRanksOfHost)};
  const JobId id = number_of(key, host, rank);
  Member& member = ranks_.at(id);
  if (std::exchange(member.lost_at, std::nullopt).has_value()) to_tell_.push_back(id);
  member.number = rank.number;
  member.seen = rank.report;
  // A rank that comes back keeps the time at which it was heard of first, and so its place.
  if (member.since == Nanos{}) member.since = now;
  member.seen.standing = standing_of(rank.contender, member.since);
  member.seen.setback = setback_of(rank.contender);
  member.seen.job = member.seen.standing.id = id;
  member.seen.device = host.numbers[rank.report.device];
  rows_.report(member.seen, now);
  // A report that comes in a round belongs to that round.
  is_due_ = is_due_ || !is_round_open_;
  return {};
}

// Returns the arbiter's number of the rank. A lost rank in its place whose job has no number at
// this coordinator is the same process, which the coordinator before knew.
JobId Arbiter::number_of(const HostKey& key, Host& host, const Rank& rank) {
  if (const auto known = host.ranks.find(rank.report.job); known != host.ranks.end())
    return known->second;
  const auto has_number = [&host](JobId id, const Member& member) {
    const auto known = host.ranks.find(member.job);
    return known != host.ranks.end() && known->second == id;
  };
  auto found = std::find_if(ranks_.begin(), ranks_.end(), [&](const auto& each) {
    const Member& member = each.second;
    return member.lost_at.has_value() && member.host == key && member.number == rank.number &&
           member.seen.gang == rank.report.gang && !has_number(each.first, member);
  });
  if (found == ranks_.end()) {
    last_ = JobId{last_.value + 1};
    found = ranks_.emplace(last_, Member{.host = key}).first;
  }
  found->second.job = rank.report.job;
  host.ranks[rank.report.job] = found->first;
  return found->first;
}

// A host reports all of its ranks before its first answer. So ranks of the same coordinator that it
// did not report have ended.
void Arbiter::note_looked(const HostKey& key, Host& host, std::uint64_t round) {
  if (host.owes == round) host.owes.reset();
  if (!std::exchange(host.is_telling, false)) return;
  for (const auto& [job, id] : std::map(host.ranks)) {
    GS_CHECK(ranks_.at(id).host == key);
    if (ranks_.at(id).lost_at.has_value()) forget(id);
  }
}

// join() or step() may have left the peer before. The caller then closes its connection, and says
// here that it has ended.
void Arbiter::leave(PeerId peer, Nanos now) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  const HostKey key = found->second;
  lose(key, hosts_.at(key), now);
}

// The time is noted, because the host may come back within kGrace. Its single jobs go on by
// themselves, so no row waits for them until it reports them again.
void Arbiter::lose(const HostKey& key, Host& host, Nanos now) {
  peers_.erase(*host.peer);
  host.peer.reset();
  host.owes.reset();
  host.lost_at = now;
  is_due_ = true;
  for (auto& [id, member] : ranks_) {
    if (member.host != key) continue;
    // A host that is lost again and again gives its lost ranks no more time.
    if (!member.lost_at.has_value()) member.lost_at = now;
    member.seen.is_known = member.seen.wants = member.seen.has_lease = false;
    member.seen.is_in_gap = false;
    rows_.report(member.seen, now);
  }
  for (const std::size_t device : host.numbers)
    rows_.note_singles(device, {});
}

// The next coordinator of the host may have given the number of the job to another rank. That rank
// stays among the ranks of the host.
void Arbiter::forget(JobId id) {
  const auto found = ranks_.find(id);
  auto& of_host = hosts_.at(found->second.host).ranks;
  const auto known = of_host.find(found->second.job);
  if (known != of_host.end() && known->second == id) of_host.erase(known);
  rows_.forget(id);
  ranks_.erase(found);
  is_due_ = true;
}

// Forgets the ranks of a lost host, the ranks that did not come back to their host's next
// coordinator, and at last the host.
void Arbiter::forget_lost(Nanos now, Ready& ready) {
  std::vector<JobId> forgotten;
  for (const auto& [id, member] : ranks_) {
    if (!member.lost_at.has_value()) continue;
    const Nanos due = *member.lost_at + kGrace;
    if (now < due) {
      ready.look_by(due);
      continue;
    }
    ready.said.push_back(fmt::format("gang {}: rank {} of {} did not come back and is forgotten",
                                     member.seen.gang.second, member.number, member.host.first));
    forgotten.push_back(id);
  }
  for (const JobId id : forgotten)
    forget(id);
  for (auto host = hosts_.begin(); host != hosts_.end();) {
    if (host->second.peer.has_value() || now < host->second.lost_at + kGrace) {
      ++host;
      continue;
    }
    const std::vector<std::size_t>& numbers = host->second.numbers;
    free_devices_.insert(free_devices_.end(), numbers.begin(), numbers.end());
    host = hosts_.erase(host);
  }
}

// Free numbers are used first. Otherwise the tables of the rows would grow with each host that
// comes and goes.
std::size_t Arbiter::new_device(const std::string& name) {
  std::size_t device = num_devices_;
  if (free_devices_.empty()) {
    ++num_devices_;
  } else {
    device = free_devices_.back();
    free_devices_.pop_back();
  }
  rows_.name_device(device, name);
  return device;
}

}  // namespace gpushare::arbiter
