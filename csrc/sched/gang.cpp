#include "csrc/sched/gang.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/handlers.h"
#include "csrc/sched/lane_moves.h"
#include "csrc/sched/memory_plan.h"
#include "csrc/sched/serve.h"
#include "csrc/sched/shares.h"
#include "csrc/sched/user_room.h"

namespace gpushare::sched {
namespace {

// Ranks come to a boundary one after the other; one that does not come now does something else.
constexpr Nanos kComingTogether = millis(200);
// As many of its iterations one may take, and as long at least, until another is let in.
constexpr int kIterationsInStep = 2;
constexpr Nanos kLeastInStep = millis(50);

GangId id_of(const Job& job) { return {job.uid, job.of.gang}; }

JobSet holders_of_lane(const Lane& lane) {
  JobSet holders = lane.lease->along;
  holders.push_back(lane.lease->job);
  return holders;
}

// Iterations in this lease; 0 if it had none, or that is not known.
std::uint64_t num_ended(const Lease& lease, const Job& job) {
  const auto before = lease.iterations_before.find(job.id);
  const bool is_known =
      before != lease.iterations_before.end() && job.usage.iterations > before->second;
  return is_known ? job.usage.iterations - before->second : 0;
}

// Whether its page was looked at since the other began to wait; if not, it will be.
bool was_seen(Step& step, const Job& holder, const Job& waiting) {
  if (holder.observed_at >= waiting.waiting_since) return true;
  step.look_at(holder.id);
  if (holder.is_connected && holder.is_registered) step.due(step.now());
  return false;
}

// Whether a holder cannot end its iteration without it.
bool is_needed(Step& step, const Lane& lane, const Job& job) {
  const Table& table = std::as_const(step).table();
  const Lease& lease = *lane.lease;
  bool is_any_inside = false;
  Nanos longest;
  for (const JobId id : holders_of_lane(lane)) {
    const Job& holder = table.at(id);
    if (!was_seen(step, holder, job) || holder.usage.is_in_gap) continue;
    const bool is_ahead = num_ended(lease, holder) + 1 > num_ended(lease, job);
    if (is_ahead && !lease.let_in.contains(job.id)) return true;
    is_any_inside = true;
    longest = std::max(longest, holder.iteration);
    step.look_at(id);
  }
  const Nanos due = job.waiting_since + std::max(longest * kIterationsInStep, kLeastInStep);
  if (step.now() < due) step.due(due);
  return is_any_inside && step.now() >= due;
}

// Some job outside the gang that may give room later.
bool may_room_come(const Table& table, const Device& device, const Job& job) {
  return std::any_of(device.ledger.rooms().begin(), device.ledger.rooms().end(),
                     [&](const auto& entry) {
                       const Job& other = table.at(entry.first);
                       return entry.second > Bytes{0} && !are_together(other, job) &&
                              other.id != job.id && !is_parked(device, other);
                     });
}

// True: it waits for room that others give.
bool waits_for_room(Step& step, Device& device, const Lane& lane, const Job& job, RoomPool& pool) {
  const Bytes deficit = deficit_of(device, lane, job, pool);
  if (job.revoke.has_value()) {
    step.due(step.table().answer_due(job));
    return true;
  }
  if (deficit <= Bytes{0}) return false;
  Bytes missing = deficit - pool.expected;
  missing -= cut_before_copies(step, device, job, missing, pool);
  if (missing > Bytes{0}) missing -= ask_for_room(step, device, job.id, missing, pool);
  const Nanos patience_ends =
      std::max(job.waiting_since, lane.lease->granted_at) + step.table().options.memory_wait;
  step.due(patience_ends);
  const Bytes lacking = deficit_of(device, lane, job, pool) + pool.free;
  const bool is_coming = pool.expected > Bytes{0} || may_room_come(step.table(), device, job);
  if (lacking > pool.free && is_coming && step.now() < patience_ends) {
    pool.take(std::clamp(lacking, Bytes{0}, pool.usable()));
    return true;
  }
  return false;
}

void give_room(Step& step, Device& device, Job& job, RoomPool& pool) {
  const Bytes lacking = needed_room(job, device.ledger.capacity()) - device.ledger.room(job.id);
  const Bytes rise = std::min({lacking, pool.free, left_to_user(device, job)});
  if (rise <= Bytes{0}) return;
  step.grant_room(device, job, rise, 0);
  pool.take(rise);
}

void grant(Step& step, const Device& device, Lane& lane, Job& job) {
  Lease& lease = *lane.lease;
  const Nanos waited = std::max(step.now() - job.waiting_since, Nanos{});
  job.waits_in_gang = false;
  job.waited += waited;
  job.waited_last = waited;
  job.handover = Nanos{};
  job.may_come_inside = false;
  ++job.leases;
  job.iterations_granted = job.usage.iterations;
  job.term = Term{job.term.value + 1};
  lease.along.push_back(job.id);
  if (lease.is_asked) lease.let_in.insert(job.id);
  note_begun(lease, job);
  step.act({PageAction::Kind::kGrant, job.id, job.term, job.last_grant_n});
  step.decide(device, job.id, "grant",
              fmt::format("along with {}, of the gang {}{}", lease.job.value, job.of.gang,
                          lease.is_asked ? ", for one iteration" : ""));
  if (lease.is_asked) step.act({PageAction::Kind::kAsk, job.id, job.term, 0});
}

}  // namespace

bool are_together(const Job& job, const Job& other) {
  return is_in_gang(job) && job.of.gang == other.of.gang && job.uid == other.uid &&
         job.of.device == other.of.device;
}

JobSet gang_of(const Device& device, const Job& job) {
  const auto found = device.gangs.find(id_of(job));
  if (found == device.gangs.end()) return {};
  const JobSet& gang = found->second;
  return std::binary_search(gang.begin(), gang.end(), job.id) ? gang : JobSet{};
}

bool is_gang_running(const Table& table, const Device& device, const Job& job) {
  if (!is_in_gang(job)) return false;
  return std::any_of(device.lanes.begin(), device.lanes.end(), [&](const Lane& lane) {
    return lane.lease.has_value() && are_together(table.at(lane.lease->job), job);
  });
}

void join_gang(Device& device, const Job& job) {
  if (!is_in_gang(job)) return;
  JobSet& gang = device.gangs[id_of(job)];
  gang = with(gang, job.id);
}

void leave_gang(Device& device, const Job& job) {
  const auto found = device.gangs.find(id_of(job));
  if (found == device.gangs.end()) return;
  found->second = without(found->second, job.id);
  if (found->second.empty()) device.gangs.erase(found);
}

void settle_gangs(Step& step, Device& device) {
  const Table& table = std::as_const(step).table();
  for (const auto& [id, gang] : device.gangs) {
    JobSet waiting;
    Nanos first = step.now();
    bool is_settled = false;
    for (const JobId member : gang) {
      const Job& job = table.at(member);
      is_settled = is_settled || job.is_waiting || is_gang_running(table, device, job);
      if (!job.waits_in_gang) continue;
      if (job.is_paused() && !is_gang_running(table, device, job)) {
        step.table().at(member).waits_in_gang = false;
        step.table().at(member).waits_paused = true;
        continue;
      }
      waiting.push_back(member);
      first = std::min(first, job.waiting_since);
    }
    if (is_settled || waiting.empty()) continue;
    const Lane& lane = Table::lane_of(device, table.at(waiting.front()));
    const bool is_alone = !lane.lease.has_value() && lane.waiting.empty();
    const Nanos due = first + kComingTogether;
    if (waiting.size() < gang.size() && !is_alone && step.now() < due) {
      step.due(due);
      continue;
    }
    stand_in_line(step, step.table().at(waiting.front()));
  }
}

void note_begun(Lease& lease, const Job& job) {
  if (is_in_gang(job)) lease.iterations_before.emplace(job.id, job.usage.iterations);
}

void grant_along(Step& step, Device& device, Lane& lane, RoomPool& pool) {
  for (const JobId id : gang_of(device, step.table().at(lane.lease->job))) {
    Job& job = step.table().at(id);
    if (!job.waits_in_gang) continue;
    if (lane.lease->is_asked && !is_needed(step, lane, job)) continue;
    const bool is_elsewhere = job.in_lane != lane.id;
    if (is_elsewhere && !may_be_moved(device, job)) continue;
    if (is_elsewhere) change_lane(step, job, lane.id);
    if (waits_for_room(step, device, lane, job, pool)) continue;
    give_room(step, device, job, pool);
    grant(step, device, lane, job);
  }
}

void ask_along(Step& step, const Lane& lane) {
  for (const JobId id : lane.lease->along)
    step.act({PageAction::Kind::kAsk, id, std::as_const(step).table().at(id).term, 0});
}

bool leave_to_others(Step& step, Device& device, Lane& lane, Job& job) {
  Lease& lease = *lane.lease;
  if (lease.along.empty()) return false;
  job.charge(step.now() - lease.granted_at);
  note_charged(step, device, lane, job);
  job.note_closed(step.now());
  job.note_change();
  if (lease.job != job.id) {
    std::erase(lease.along, job.id);
    return true;
  }
  lease.job = lease.along.front();
  lease.along.erase(lease.along.begin());
  lease.timed_from.reset();
  lease.owed = lease.under_way = Bytes{};
  lane.last_holder = lease.job;
  return true;
}

bool adopt_along(Step& step, Device& device, Job& job, Term term) {
  for (Lane& lane : device.lanes) {
    if (!lane.lease.has_value() || lane.lease->job == job.id) continue;
    const JobSet holders = holders_of_lane(lane);
    if (!are_together(std::as_const(step).table().at(holders.front()), job)) continue;
    if (std::find(holders.begin(), holders.end(), job.id) == holders.end()) {
      if (job.in_lane != lane.id) change_lane(step, job, lane.id);
      lane.lease->along.push_back(job.id);
    }
    job.term = term;
    return true;
  }
  return false;
}

std::string gang_text(const Table& table, const Device& device, const Job& job) {
  const JobSet gang = gang_of(device, job);
  std::size_t num_waiting = 0;
  for (const JobId id : gang) {
    const Job& other = table.at(id);
    if (other.is_waiting) {
      return fmt::format("job {} stands in line for the {} jobs of gang {}", id.value, gang.size(),
                         job.of.gang);
    }
    if (other.waits_in_gang) ++num_waiting;
  }
  const char* const until = is_gang_running(table, device, job)
                                ? "it is let in when the others need it"
                                : "they stand in line together";
  return fmt::format("{} of the {} jobs of gang {} want a lease: {}", num_waiting, gang.size(),
                     job.of.gang, until);
}

}  // namespace gpushare::sched
