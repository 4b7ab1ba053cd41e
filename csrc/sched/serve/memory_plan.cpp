// How a deficit is divided among the jobs that can give.
//
// 1. Everything that can be dropped without a copy, from parked jobs, the furthest next use first.
//    A job that is about to park, and is used later than all of them, counts as parked.
// 2. What parked jobs hold beyond an elastic limit of their own, then what other users' jobs hold
//    beyond an elastic limit of their user.
// 3. All the room of parked jobs, then that of jobs that are not parked, which give what is free of
//    it at most, then the room of jobs that wait in an allocation.
// 4. What others of the claimant's gang can drop without a copy. They compute together, so the rest
//    of their memory is in use or will be at once. The same of holders that are of the claimant's
//    program, since they may wait for it inside their iteration; and of any holder, once the
//    claimant has waited for kPatienceWithHolders and has given nothing itself: they may wait for
//    it too, over a socket say, and what they do not use costs them little.
//
// Copies are planned only as far as the host tier has room. If even all of the tier would not be
// enough for the deficit, nothing is copied: the bytes would be moved for a lease that cannot be
// granted.
//
// Other holders give nothing: others wait for their boundary. Of two holders that wait for room,
// the later one gives to the earlier one. So of jobs that wait for each other always the same one
// goes on.
#include "csrc/sched/serve/memory_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/limit.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/plans/quantum.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/program.h"

namespace gpushare::sched {
namespace {

// Two jobs may each be chosen for a free lane and be short of room. The one that has been short for
// longer gives nothing to the other, or they would take the same bytes from each other in turn.
bool is_chosen_before(const Device& device, const Job& job, const Lane& claims) {
  const Lane& lane = device.lane_of(job);
  if (lane.next() != job.id) return false;
  if (is_short_before(lane, claims)) return true;
  return lane.short_since().has_value() && !is_short_before(claims, lane) && lane.id < claims.id;
}

// pre: it has room.
bool may_be_asked(const Job& job, const Job& claimant) {
  const bool can_be = job.is_connected() && !job.place.is_suspended() && !job.place.is_inside &&
                      !job.room.cannot_give && !job.room.revoke.has_value();
  return can_be && job.id != claimant.id;
}

// Whether the job gives to the claimant what it does not use, though it has a lease.
bool gives_unused(const Table& table, const Job& job, const Job& claimant, Nanos now) {
  const Device& device = table.device;
  if (are_together(job, claimant)) return true;
  const bool is_holder = device.lane_held_by(job.id) != nullptr;
  const bool is_claimant_free = device.lane_held_by(claimant.id) == nullptr;
  if (!is_holder || !is_claimant_free || now < job.room.spared_until) return false;
  const auto need = std::ranges::lower_bound(device.needs, claimant.id, {}, &WaitingNeed::job);
  if (need == device.needs.end() || need->job != claimant.id || need->has_given) return false;
  return are_related(job, claimant) || now >= need->since + kPatienceWithHolders;
}

// Stopped in an allocation, it can be spilled until its Need is met (see WaitingNeed). It gives to
// a holder, whose boundary everybody waits for, and else to a job that came before it, as one of
// two holders does: so of jobs that wait for each other one goes on, and always the same one. By
// the age of their Needs they would take turns, and spill each other for every tensor they make.
bool gives_blocked(const Table& table, const Job& job, const Job& claimant) {
  const Device& device = table.device;
  if (!device.has_need(job.id) || !device.has_need(claimant.id)) return false;
  // The claimant is of a running gang, so it cannot give to this job in its turn (MemoryPlan).
  if (is_gang_running(table, claimant)) return true;
  const bool is_held = device.lane_held_by(job.id) != nullptr;
  const bool is_claimant_held = device.lane_held_by(claimant.id) != nullptr;
  return is_held == is_claimant_held ? claimant.id < job.id : is_claimant_held;
}

// A holder that is not stopped needs its memory until its boundary.
bool gives_unparked(const Device& device, const Job& job, Nanos now) {
  return device.lane_held_by(job.id) == nullptr && !device.has_need(job.id) &&
         now >= job.room.spared_until;
}

// The job's place in line, or the one that it would get if it queued now.
OrderKey place_in_line(const Device& device, const Job& job, Nanos now) {
  return job.place.is_waiting() ? order_key(device, job)
                                : order_key(device, job.requeued(Nanos{0}, now));
}

// When a job that has closed its lease is waited for no longer.
Nanos comes_until(const Job& job) {
  return *job.measured.closed_at + park_allowance(job.measured.stall);
}

// A job that took long to park the last time is not waited for now.
// pre: it gives unparked.
bool may_come(const Job& job, Nanos now) {
  return job.measured.closed_at.has_value() && job.is_registered() && now < comes_until(job) &&
         job.measured.park_delay <= park_allowance(job.measured.stall);
}

// How a deficit is divided: what each job gives, and what of the host tier that takes.
class Shares {
 public:
  explicit Shares(Bytes deficit, Bytes host = {}) : missing_(deficit), host_(host) {}

  [[nodiscard]] Bytes missing() const { return missing_; }
  [[nodiscard]] Bytes of(const Job& job) const { return value_or(entries_, job.id, Entry{}).bytes; }
  // The job gives up to `most` in all without a copy, if so much is missing.
  void raise(const Job& job, Bytes most) {
    const Bytes more = std::min(missing_, most - of(job));
    if (more <= Bytes{0}) return;
    missing_ -= more;
    if (of(job) == Bytes{0}) order_.push_back(job.id);
    entries_[job.id].bytes += more;
  }
  // The job gives up to `most` in all with copies, as far as the host tier has room.
  void raise_with_copies(const Device& device, const Job& job, Bytes most) {
    // An earlier part of the plan may have reserved room in the host tier for this job. It is given
    // back, and all that the job gives is planned anew.
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

// Divides what can be given without a copy, from the furthest next use on.
void share_drops(Shares& shares, const Device& device, GiverLine& parked, const Job* coming) {
  if (coming != nullptr) shares.raise(*coming, droppable(device, *coming));
  Bytes left = parked.droppable();
  for (std::size_t i = 0; shares.missing() > Bytes{0} && left > Bytes{0}; ++i) {
    const Giver& giver = *parked.at(i);
    shares.raise(*giver.job, giver.droppable);
    left -= giver.droppable;
  }
}

// Divides what parked jobs hold beyond elastic limits of their own.
void share_beyond_own(Shares& shares, const Device& device, GiverLine& parked) {
  if (!parked.is_any_elastic()) return;
  for (std::size_t i = 0; const Giver* const giver = parked.at(i); ++i) {
    const Job& job = *giver->job;
    if (job.settings.is_elastic) {
      shares.raise_with_copies(device, job, beyond_own_limit(device, job));
    }
  }
}

// Divides what parked jobs of other users hold beyond their users' elastic limits.
void share_beyond_users(
    Shares& shares, const Table& table, GiverLine& parked, std::uint32_t claimant, Nanos now) {
  if (!parked.is_any_elastic()) return;
  std::map<std::uint32_t, Bytes> beyond;  // by user, what he does not give yet
  const auto is_meant = [&](const Job& job) {
    return job.settings.is_user_elastic && job.who.uid != claimant;
  };
  for (std::size_t i = 0; const Giver* const giver = parked.at(i); ++i) {
    const Job& job = *giver->job;
    if (!is_meant(job)) continue;
    const auto [left, is_new] = beyond.try_emplace(job.who.uid);
    if (is_new) {
      left->second = beyond_elastic(table, job.who.uid) - coming_from_user(table, job.who.uid, now);
    }
    left->second -= shares.of(job);
  }
  for (std::size_t i = 0; const Giver* const giver = parked.at(i); ++i) {
    const Job& job = *giver->job;
    if (!is_meant(job) || beyond.at(job.who.uid) <= Bytes{0}) continue;
    Bytes& left = beyond.at(job.who.uid);
    const Bytes before = shares.of(job);
    shares.raise_with_copies(table.device, job, before + left);
    left -= shares.of(job) - before;
  }
}

}  // namespace

// All jobs that hold room are looked at once, and put into one of four lines by how willingly they
// give. A holder is in one of them only as a peer, for what it does not use.
MemoryPlan::MemoryPlan(const Table& table,
                       JobId claimant,
                       Nanos now,
                       std::optional<std::uint32_t> of_user)
    : table_(table), claimant_(table.at(claimant)), now_(now), of_user_(of_user) {
  const Device& device = table.device;
  const auto claims = std::ranges::find(device.lanes, claimant, &Lane::next);
  for (const auto& [id, room] : device.ledger.rooms()) {
    if (room <= Bytes{0}) continue;
    const Job& job = table.at(id);
    if (of_user.value_or(job.who.uid) != job.who.uid) continue;
    if (!may_be_asked(job, claimant_)) continue;
    if (claims != device.lanes.end() && is_chosen_before(device, job, *claims)) continue;
    GiverLine* const line = line_of(job);
    if (line == nullptr) continue;
    const Bytes without_copy = droppable(device, job);
    if (line != &peers_) to_spill_ += room - without_copy;
    line->add({&job, place_in_line(device, job, now), without_copy});
  }
}

// Peers give what they can drop, unless they are stopped in an allocation themselves.
GiverLine* MemoryPlan::line_of(const Job& job) {
  const Device& device = table_.device;
  if (gives_unused(table_, job, claimant_, now_))
    return device.has_need(job.id) ? nullptr : &peers_;
  if (is_gang_running(table_, job)) return nullptr;
  if (is_parked(device, job)) return &parked_;
  if (gives_unparked(device, job, now_)) return &unparked_;
  return gives_blocked(table_, job, claimant_) ? &blocked_ : nullptr;
}

// How much of the host tier is worth using for `deficit`. It is nothing if even all of the tier
// would not be enough, so that no bytes are copied for a lease that cannot be granted.
Bytes MemoryPlan::host_to_use(Bytes deficit) const {
  const Bytes free = host_free(table_).total();
  const Bytes to_drop =
      parked_.droppable() + unparked_.droppable() + blocked_.droppable() + peers_.droppable();
  return to_spill_ > free && to_drop + free < deficit ? Bytes{0} : free;
}

// A job that closed its lease a moment ago and is used later than all parked jobs; null: none.
const Job* MemoryPlan::find_coming() {
  if (parked_.empty()) return nullptr;
  const Giver* last = nullptr;
  for (const Giver& giver : unparked_) {
    const bool is_later = last == nullptr || last->key < giver.key;
    if (is_later && may_come(*giver.job, now_) && parked_.is_before(giver)) last = &giver;
  }
  return last == nullptr ? nullptr : last->job;
}

// The order of the parts is the one at the top of this file. Each part takes what it can get of the
// deficit, and the next one sees what is left.
std::vector<Giving> MemoryPlan::revokes(Bytes deficit) {
  Shares shares(deficit, host_to_use(deficit));
  share_drops(shares, table_.device, parked_, find_coming());
  share_beyond_own(shares, table_.device, parked_);
  if (!of_user_.has_value()) {
    share_beyond_users(shares, table_, parked_, claimant_.who.uid, now_);
  }
  for (GiverLine* const line : {&parked_, &unparked_, &blocked_}) {
    for (std::size_t i = 0; shares.missing() > Bytes{0}; ++i) {
      const Giver* const giver = line->at(i);
      if (giver == nullptr) break;
      shares.raise_with_copies(table_.device, *giver->job,
                               table_.device.ledger.room(giver->job->id));
    }
  }
  for (const Giver& peer : peers_)
    shares.raise(*peer.job, peer.droppable);
  return shares.take();
}

Bytes MemoryPlan::beyond_drops(Bytes deficit) {
  Shares shares(deficit);
  share_drops(shares, table_.device, parked_, find_coming());
  return shares.missing();
}

// Only copies are worth a wait. What the coming job gives without one it is asked for at once, as
// if it were parked.
std::optional<ComingGiver> MemoryPlan::coming(Bytes deficit) {
  const Job* const coming = find_coming();
  if (coming == nullptr) return std::nullopt;
  Shares shares(deficit);
  share_drops(shares, table_.device, parked_, coming);
  const Bytes host = host_free(table_).total();
  const bool can_spill =
      most_to_ask(table_.device, *coming, host) > droppable(table_.device, *coming);
  if (shares.missing() <= Bytes{0} || !can_spill) return std::nullopt;
  return ComingGiver{coming->id, comes_until(*coming)};
}

bool gets_from_holders(const Table& table, const Job& claimant, Nanos now) {
  return std::ranges::any_of(table.device.lanes, [&](const Lane& lane) {
    return lane.lease.has_value() &&
           gives_unused(table, table.at(lane.lease->job()), claimant, now);
  });
}

// Waiting may help as long as there is such a job. Parked jobs were asked already, and gave what
// they could.
JobId later_giver(const Table& table, JobId claimant) {
  for (const auto& [id, room] : table.device.ledger.rooms()) {
    if (id == claimant || room == Bytes{0}) continue;
    const Job& job = table.at(id);
    if (!is_parked(table.device, job) || job.room.revoke.has_value() || job.place.is_suspended()) {
      return id;
    }
  }
  return JobId{0};
}

}  // namespace gpushare::sched
