#include "csrc/sched/memory_plan.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "csrc/sched/gang.h"
#include "csrc/sched/host_tier.h"
#include "csrc/sched/limit.h"
#include "csrc/sched/quantum.h"
#include "csrc/sched/room.h"
#include "csrc/sched/shares.h"
#include "csrc/sched/user_room.h"

namespace gpushare::sched {
namespace {

// When a job is thought to be used next: users of one class by turns, each with his next job.
struct NextUse {
  wire::Priority priority = wire::Priority::kNormal;
  std::size_t turn = 0;  // of its user's
  OrderKey key;
  auto operator<=>(const NextUse&) const = default;
};
using Keyed = std::pair<NextUse, const Job*>;

// Of two jobs that are each chosen for a free lane, and short of room, the one that is so for
// longer gives nothing to the other: else they would take the same bytes from each other, by turns.
bool is_chosen_before(const Device& device, const Job& job, JobId claimant) {
  const Lane& lane = Table::lane_of(device, job);
  const auto claims = std::find_if(device.lanes.begin(), device.lanes.end(),
                                   [&](const Lane& other) { return other.next == claimant; });
  if (lane.next != job.id || claims == device.lanes.end()) return false;
  if (is_short_before(lane, *claims)) return true;
  return lane.short_since.has_value() && !is_short_before(*claims, lane) && lane.id < claims->id;
}

bool may_be_asked(const Table& table, const Device& device, const Job& job, JobId claimant) {
  if (is_chosen_before(device, job, claimant) || is_gang_running(table, device, job)) return false;
  if (is_in_gang(job) && are_together(job, table.at(claimant))) return false;
  return job.id != claimant && job.is_connected && !job.is_suspended() && !job.is_inside &&
         !job.cannot_give && !job.revoke.has_value() && device.ledger.room(job.id) > Bytes{0};
}

// Stopped in an allocation, it can be spilled until its Need is met (see WaitingNeed). It gives to
// a holder, whose boundary everybody waits for, and else to a job that came before it, as one of
// two holders does: so of jobs that wait for each other one goes on, and always the same one. By
// the age of their Needs they would take turns, and spill each other for every tensor they make.
bool gives_blocked(const Table& table, const Device& device, const Job& job, JobId claimant) {
  if (!device.has_need(job.id) || !device.has_need(claimant)) return false;
  // That one cannot give in turn (may_be_asked).
  if (is_gang_running(table, device, table.at(claimant))) return true;
  const bool is_held = device.lane_held_by(job.id) != nullptr;
  const bool is_claimant_held = device.lane_held_by(claimant) != nullptr;
  return is_held == is_claimant_held ? claimant < job.id : is_claimant_held;
}

// A holder that is not stopped needs its memory until its boundary.
bool gives_unparked(const Device& device, const Job& job, Nanos now) {
  return device.lane_held_by(job.id) == nullptr && !device.has_need(job.id) &&
         now >= job.spared_until;
}

// What of the host tier is worth using for `deficit`: nothing where even all of it would not do, so
// that nobody's bytes are copied for a lease that cannot be granted.
Bytes host_to_use(const Table& table,
                  const Device& device,
                  const std::vector<Keyed>& givers,
                  Bytes deficit) {
  const Bytes free = host_free(table).total();
  Bytes to_drop;
  Bytes to_spill;
  for (const auto& [key, job] : givers) {
    to_drop += droppable(device, *job);
    to_spill += device.ledger.room(job->id) - droppable(device, *job);
  }
  return to_spill > free && to_drop + free < deficit ? Bytes{0} : free;
}

// Those who may be asked, by how willingly, and in each class the furthest next use first.
struct Givers {
  std::vector<Keyed> parked;
  std::vector<Keyed> unparked;
  std::vector<Keyed> blocked;

  [[nodiscard]] std::vector<Keyed> in_order() const {
    std::vector<Keyed> all = parked;
    all.insert(all.end(), unparked.begin(), unparked.end());
    all.insert(all.end(), blocked.begin(), blocked.end());
    return all;
  }
};

// Its place in line, or the one it would get.
OrderKey place_in_line(const Device& device, const Job& job, Nanos now) {
  return order_key(device, job.is_waiting ? job : job.requeued(Nanos{0}, now));
}

// Of those who may be asked, the nearest next use first.
std::vector<Keyed> next_uses(const Table& table, const Device& device, JobId claimant, Nanos now) {
  std::vector<std::pair<OrderKey, const Job*>> in_line;
  for (const auto& [id, room] : device.ledger.rooms()) {
    const Job& job = table.at(id);
    if (may_be_asked(table, device, job, claimant)) {
      in_line.emplace_back(place_in_line(device, job, now), &job);
    }
  }
  std::sort(in_line.begin(), in_line.end());
  std::vector<Keyed> uses;
  std::map<std::pair<wire::Priority, std::uint32_t>, std::size_t> num_turns;
  for (const auto& [key, job] : in_line) {
    const std::size_t turn = num_turns[{key.priority, key.user}]++;
    uses.emplace_back(NextUse{key.priority, turn, key}, job);
  }
  std::sort(uses.begin(), uses.end());
  return uses;
}

Givers find_givers(const Table& table,
                   const Device& device,
                   JobId claimant,
                   Nanos now,
                   std::optional<std::uint32_t> of_user = {}) {
  Givers givers;
  for (const Keyed& use : next_uses(table, device, claimant, now)) {
    const Job& job = *use.second;
    if (of_user.has_value() && job.uid != *of_user) continue;
    if (is_parked(device, job)) {
      givers.parked.push_back(use);
    } else if (gives_unparked(device, job, now)) {
      givers.unparked.push_back(use);
    } else if (gives_blocked(table, device, job, claimant)) {
      givers.blocked.push_back(use);
    }
  }
  // One that is paused has no next use that is known.
  const auto is_further = [](const Keyed& a, const Keyed& b) {
    const bool is_paused = a.second->is_paused();
    return is_paused != b.second->is_paused() ? is_paused : a.first > b.first;
  };
  for (std::vector<Keyed>* const all : {&givers.parked, &givers.unparked, &givers.blocked})
    std::sort(all->begin(), all->end(), is_further);
  return givers;
}

// When a job that has closed its lease is waited for no longer.
Nanos comes_until(const Job& job) { return *job.closed_at + park_allowance(job.stall); }

// pre: it gives unparked.
bool may_come(const Job& job, Nanos now) {
  return job.closed_at.has_value() && job.is_registered && now < comes_until(job) &&
         job.park_delay <= park_allowance(job.stall);
}

// A job that closed its lease a moment ago and is used later than all parked jobs; null: none.
const Job* find_coming(const Givers& givers, Nanos now) {
  if (givers.parked.empty() || givers.parked.front().second->is_paused()) return nullptr;
  for (const auto& [key, job] : givers.unparked) {
    if (may_come(*job, now) && givers.parked.front().first < key) return job;
  }
  return nullptr;
}

// Of what is asked for, what each job gives, and what of the host tier that takes.
class Shares {
 public:
  explicit Shares(Bytes deficit, Bytes host = {}) : missing_(deficit), host_(host) {}

  [[nodiscard]] Bytes missing() const { return missing_; }
  [[nodiscard]] Bytes of(const Job& job) const {
    const auto entry = entries_.find(job.id);
    return entry == entries_.end() ? Bytes{0} : entry->second.bytes;
  }
  // It gives up to `most` in all without a copy, if so much is missing.
  void raise(const Job& job, Bytes most) {
    const Bytes more = std::min(missing_, most - of(job));
    if (more <= Bytes{0}) return;
    missing_ -= more;
    if (of(job) == Bytes{0}) order_.push_back(job.id);
    entries_[job.id].bytes += more;
  }
  // And with copies, as far as the host tier has room.
  void raise_with_copies(const Device& device, const Job& job, Bytes most) {
    Bytes& host = entries_[job.id].host;
    host_ += host;
    raise(job, std::min(most, most_to_ask(device, job, host_)));
    host = spill_of(device, job, of(job), host_);
    host_ -= host;
  }
  [[nodiscard]] std::vector<Giving> take() const {
    std::vector<Giving> givings;
    for (const JobId id : order_)
      givings.push_back({id, entries_.at(id).bytes});
    return givings;
  }

 private:
  struct Entry {
    Bytes bytes;
    Bytes host;
  };

  Bytes missing_;
  Bytes host_;                      // free
  std::map<JobId, Entry> entries_;  // of those in order_, and perhaps others that give nothing
  std::vector<JobId> order_;
};

// What can be given without a copy.
void share_drops(Shares& shares, const Device& device, const Givers& givers, const Job* coming) {
  if (coming != nullptr) shares.raise(*coming, droppable(device, *coming));
  for (const auto& [key, job] : givers.parked)
    shares.raise(*job, droppable(device, *job));
}

// What parked jobs hold beyond elastic limits of their own.
void share_beyond_own(Shares& shares, const Device& device, const Givers& givers) {
  for (const auto& [key, job] : givers.parked)
    if (job->is_elastic) shares.raise_with_copies(device, *job, beyond_own_limit(device, *job));
}

// What other users' parked jobs hold beyond an elastic limit.
void share_beyond_users(Shares& shares,
                        const Table& table,
                        const Device& device,
                        const Givers& givers,
                        std::uint32_t claimant,
                        Nanos now) {
  std::map<std::uint32_t, Bytes> beyond;  // by user, what he does not give yet
  for (const auto& [key, job] : givers.parked) {
    if (!job->is_user_elastic || job->uid == claimant) continue;
    const auto [left, is_new] = beyond.try_emplace(job->uid);
    if (is_new) {
      left->second =
          beyond_elastic(table, device, job->uid) - coming_from_user(table, device, job->uid, now);
    }
    left->second -= shares.of(*job);
  }
  for (const auto& [key, job] : givers.parked) {
    const auto left = beyond.find(job->uid);
    if (left == beyond.end() || left->second <= Bytes{0}) continue;
    const Bytes before = shares.of(*job);
    shares.raise_with_copies(device, *job, before + left->second);
    left->second -= shares.of(*job) - before;
  }
}

}  // namespace

std::vector<Giving> plan_revokes(const Table& table,
                                 const Device& device,
                                 JobId claimant,
                                 Bytes deficit,
                                 Nanos now,
                                 std::optional<std::uint32_t> of_user) {
  const Givers givers = find_givers(table, device, claimant, now, of_user);
  const std::vector<Keyed> in_order = givers.in_order();
  Shares shares(deficit, host_to_use(table, device, in_order, deficit));
  share_drops(shares, device, givers, find_coming(givers, now));
  share_beyond_own(shares, device, givers);
  if (!of_user.has_value()) {
    share_beyond_users(shares, table, device, givers, table.at(claimant).uid, now);
  }
  for (const auto& [key, job] : in_order) {
    if (shares.missing() <= Bytes{0}) break;
    shares.raise_with_copies(device, *job, device.ledger.room(job->id));
  }
  return shares.take();
}

Bytes beyond_drops(
    const Table& table, const Device& device, JobId claimant, Bytes deficit, Nanos now) {
  const Givers givers = find_givers(table, device, claimant, now);
  Shares shares(deficit);
  share_drops(shares, device, givers, find_coming(givers, now));
  return shares.missing();
}

std::optional<ComingGiver> coming_giver(
    const Table& table, const Device& device, JobId claimant, Bytes deficit, Nanos now) {
  const Givers givers = find_givers(table, device, claimant, now);
  const Job* const coming = find_coming(givers, now);
  if (coming == nullptr) return std::nullopt;
  Shares shares(deficit);
  share_drops(shares, device, givers, coming);
  const Bytes host = host_free(table).total();
  const bool can_spill = most_to_ask(device, *coming, host) > droppable(device, *coming);
  if (shares.missing() <= Bytes{0} || !can_spill) return std::nullopt;
  return ComingGiver{coming->id, comes_until(*coming)};
}

JobId later_giver(const Table& table, const Device& device, JobId claimant) {
  for (const auto& [id, room] : device.ledger.rooms()) {
    if (id == claimant || room == Bytes{0}) continue;
    const Job& job = table.at(id);
    if (!is_parked(device, job) || job.revoke.has_value() || job.is_suspended()) return id;
  }
  return JobId{0};
}

}  // namespace gpushare::sched
