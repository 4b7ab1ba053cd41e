// When the other jobs of the holder's gang get their leases.
//
// As long as the gang's lease is not asked back, each of its jobs that wants a lease gets one as
// soon as its room is settled. Once the lease is asked back, a job is let in only if the others
// need it: a holder has begun an iteration more than it has, so the others wait for it inside that
// iteration. Numbers of iterations mislead if ranks do different things. So a job is also let in if
// it has waited for two of the longest iterations while another one is inside an iteration.
//
// That rule fails where a holder's iteration is long because it waits for the job. So a holder is
// told that the job waits (program.h), and closes its lease inside the iteration when it does
// nothing for a moment. Then the job is let in at once, if it was not before in this lease.
//
// A job that lacks room waits for it before it gets its lease, but only while somebody is about to
// give. Otherwise it asks by a Need, as any holder does.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/memory/room_messages.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/serve/ask_for_room.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/lane_moves.h"
#include "csrc/sched/turns/row.h"

namespace gpushare::sched {
namespace {

// How many iterations a waiting job lets the others take, and how long at least, before it is let
// in though nobody is known to need it.
constexpr int kIterationsInStep = 2;
constexpr Nanos kLeastInStep = millis(50);

// Iterations in this lease; 0 if it had none, or that is not known.
std::uint64_t num_ended(const Lease& lease, const Job& job) {
  const auto before = lease.iterations_before.find(job.id);
  const bool is_known =
      before != lease.iterations_before.end() && job.usage.iterations > before->second;
  return is_known ? job.usage.iterations - before->second : 0;
}

// Whether the holder's page was looked at since the other began to wait.
bool was_seen(const Job& holder, const Job& waiting) {
  return holder.measured.observed_at >= waiting.place.waiting_since;
}

// The holders that are inside an iteration, as far as that was seen since the job began to wait.
std::vector<const Job*> seen_inside(const Table& table, const Lane& lane, const Job& job) {
  std::vector<const Job*> inside;
  for (const JobId id : holders_of_lane(lane)) {
    const Job& holder = table.at(id);
    if (was_seen(holder, job) && !holder.usage.is_in_gap) inside.push_back(&holder);
  }
  return inside;
}

// From when on the job is let in if somebody is inside an iteration, though nobody is known to need
// it.
Nanos let_in_at(const std::vector<const Job*>& inside, const Job& job) {
  Nanos longest;
  for (const Job* const holder : inside)
    longest = std::max(longest, holder->measured.iteration);
  return job.place.waiting_since + std::max(longest * kIterationsInStep, kLeastInStep);
}

// Whether a holder cannot end its iteration without the job.
bool is_needed(const Table& table, const Lane& lane, const Job& job, Nanos now) {
  const Lease& lease = *lane.lease;
  const std::vector<const Job*> inside = seen_inside(table, lane, job);
  const bool is_behind = std::ranges::any_of(inside, [&](const Job* holder) {
    return num_ended(lease, *holder) + 1 > num_ended(lease, job);
  });
  if (is_behind && !lease.let_in.contains(job.id)) return true;
  return !inside.empty() && now >= let_in_at(inside, job);
}

// Looks again whether the job is needed: at holders inside an iteration with the next step, at
// those that were not seen for long at once.
void look_whether_needed(Step& step, const Lane& lane, const Job& job) {
  const Table& table = std::as_const(step).table();
  for (const JobId id : holders_of_lane(lane)) {
    const Job& holder = table.at(id);
    const bool is_new = !was_seen(holder, job);
    if (is_new || !holder.usage.is_in_gap) step.look_at(id);
    if (is_new && holder.has_page()) step.due(step.now());
  }
  const Nanos due = let_in_at(seen_inside(table, lane, job), job);
  if (step.now() < due) step.due(due);
}

// Settles the room that the job lacks: takes it from pools, and asks others for it. False: the rest
// is about to be given, and the job waits for it. True: the lease need not wait for room.
bool settle_room(Step& step, const Lane& lane, const Job& job, RoomPool& pool) {
  Device& device = step.device();
  const Table& table = std::as_const(step).table();
  if (job.room.revoke.has_value()) {
    if (!table.has_missed_answer(job, step.now())) step.due(table.answer_due(job));
    return false;
  }
  const Bytes deficit = deficit_of(device, lane, job, pool);
  if (deficit <= Bytes{0}) return true;
  Bytes missing = deficit - pool.expected;
  missing -= cut_before_copies(step, job, missing, pool);
  missing -= ask_for_room(step, job.id, missing, pool);
  const Bytes lacking = deficit_of(device, lane, job, pool);
  // If nobody is about to give the rest, the job asks for it by a Need, as any holder does.
  if (lacking <= Bytes{0} || pool.expected <= Bytes{0}) return true;
  device.is_gang_short = true;
  pool.take(std::clamp(lacking + pool.free, Bytes{0}, pool.usable()));
  return false;
}

// The job gets what is free of the room that it lacks. Inside its iteration it asks for the rest by
// a Need.
void give_room(Step& step, Job& job, RoomPool& pool) {
  Device& device = step.device();
  const Bytes lacking = needed_room(job, device.ledger.capacity()) - device.ledger.room(job.id);
  const Bytes rise = std::min({lacking, pool.free, left_to_user(device, job)});
  if (rise <= Bytes{0}) return;
  grant_room(step, job, rise, 0);
  pool.take(rise);
}

void grant(Step& step, Lane& lane, Job& job) {
  Lease& lease = *lane.lease;
  job.note_granted(step.now());
  job.measured.handover = Nanos{};
  lease.let_along(job.id, step.now());
  if (lease.is_asked()) lease.let_in.insert(job.id);
  note_begun(lease, job);
  step.act({PageAction::Kind::kGrant, job.id, job.served.term, job.room.last_grant_n});
  step.decide(job.id, "grant",
              fmt::format("along with {}, of the gang {}{}", lease.job().value, job.who.of.gang,
                          lease.is_asked() ? ", for one iteration" : ""));
  // It is asked together with its grant, so it closes at the end of the one iteration.
  if (lease.is_asked()) step.act({PageAction::Kind::kAsk, job.id, job.served.term, 0});
}

// Jobs that wait in another lane come to the holder's lane for that, if they may be moved. False:
// not now.
bool let_in(Step& step, Lane& lane, Job& job, RoomPool& pool) {
  const bool is_elsewhere = job.place.in_lane != lane.id;
  if (is_elsewhere && !may_be_moved(step.device(), job)) return false;
  if (is_elsewhere) change_lane(step, job, lane.id);
  if (!settle_room(step, lane, job, pool)) return false;
  give_room(step, job, pool);
  grant(step, lane, job);
  return true;
}

}  // namespace

void let_in_for_blocked(Step& step, Lane& lane) {
  if (is_lane_suspended(lane)) return;
  RoomPool pool = room_pool(step.table(), step.now());
  for (const JobId id : gang_of(step.device(), step.table().at(lane.lease->job()))) {
    Job& job = step.table().at(id);
    const bool may_come = job.place.waits_in_gang() && !job.place.is_suspended();
    if (!may_come || lane.lease->let_in.contains(id)) continue;
    if (let_in(step, lane, job, pool)) return;
  }
}

void grant_along(Step& step, Lane& lane, RoomPool& pool) {
  if (is_lane_suspended(lane)) return;
  for (const JobId id : gang_of(step.device(), step.table().at(lane.lease->job()))) {
    Job& job = step.table().at(id);
    if (!job.place.waits_in_gang() || job.place.is_suspended() || is_outside_row(job)) continue;
    const Table& table = step.table();
    if (lane.lease->is_asked() && !is_needed(table, lane, job, step.now())) {
      look_whether_needed(step, lane, job);
      continue;
    }
    let_in(step, lane, job, pool);
  }
}

}  // namespace gpushare::sched
