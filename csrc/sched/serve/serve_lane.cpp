// A lane is given to its next job, or kept for it.
//
// If the lane is held, jobs of its holder's gang get leases along with it, and the first in line
// may get its room in advance. If it is free:
//
// 1. The lane may stay free for a moment, so that the last holder can park and give what a Need
//    waits for (Hold).
// 2. A job that was interrupted inside its iteration goes on, unless an urgent one comes before it.
//    (Under `pack` its turn comes as any other's.)
// 3. Otherwise a job is chosen (choose.h), and its room is settled: pools are cut, others are
//    asked, or the coordinator waits for a job that is about to park.
// 4. If nobody can give what the job lacks, another job that fits as it is may run in its place.
//    After memory_wait the chosen job is granted the lane with what there is, and asks for the rest
//    itself.
// 5. The grant: first the room, then the slots of the lane, then the lease, then the leases of its
//    gang.
//
// What a waiting lane has claimed it takes from the pool, so that no lane that is served later
// counts on it.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/job/admission.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/room_messages.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/serve/ask_for_room.h"
#include "csrc/sched/serve/choose.h"
#include "csrc/sched/serve/memory_plan.h"
#include "csrc/sched/serve/obstacles.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/side_by_side/elsewhere.h"
#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/turns/grant.h"
#include "csrc/sched/turns/interrupt.h"
#include "csrc/sched/turns/lane_moves.h"
#include "csrc/sched/turns/suspended.h"

namespace gpushare::sched {
namespace {

// Less room is not sent ahead of a lease. After a lease it is sent only if it is the last of it.
constexpr Bytes kWorthAMessage = mib(16);

// Keeps the lane free as long as its last holder is to park first. False: it is anybody's now.
bool keep_free(Step& step, Lane& lane) {
  const WaitingNeed* const need = stays_free_for(step.table(), lane, step.now());
  if (need == nullptr) {
    lane.hold.reset();
    return false;
  }
  step.due(lane.hold->until);
  step.wait(lane.hold->job, lane.wait_reason, stays_free_text(lane, *need));
  return true;
}

// The bytes that parked jobs were asked for and will give. Jobs that are not parked give free
// memory at most, which may be none, so they are not counted on.
Bytes coming_from_parked(const Table& table, Nanos now) {
  Bytes sum;
  for (const JobId id : table.jobs.kept().giving) {
    const Job& job = table.at(id);
    if (!table.has_missed_answer(job, now) && is_parked(table.device, job))
      sum += job.room.revoke->bytes;
  }
  return sum;
}

// Whether what the job can begin with fits, and room for the rest is on its way.
bool may_begin(const Step& step, const Job& job, Bytes deficit, const RoomPool& pool) {
  return deficit <= late_room(job) && deficit <= pool.expected &&
         deficit <= coming_from_parked(step.table(), step.now());
}

// While the host tier is full and nobody can give: a waiter that has its room already, so that jobs
// run whole, one after the other. 0: there is none.
JobId fits_as_it_is(const Table& table, const Lane& lane, const RoomPool& pool, Nanos now) {
  const Device& device = table.device;
  if (!lane.is_stuck() || !is_host_tier_short(table, lane.next())) return JobId{0};
  const auto fits = [&](const Job& job) {
    if (job.id == lane.next() || job.room.revoke.has_value() || job.place.is_inside) return false;
    return device.policy->bar(table, job, now).empty() &&
           deficit_of(device, lane, job, pool) <= Bytes{0} &&
           is_within_user_limit(device, job, growth_of(device, lane, job));
  };
  const auto first = first_set_back_least(table, lane, fits);
  return first.has_value() ? first->id : JobId{0};
}

// The job gets what is free at once, so that its memory comes back while the rest of its room is
// still being given, or the holder runs. It is parked, so it can be asked for it again. This is not
// done for a job whose user has a memory limit: the user's other jobs would be asked for the same
// bytes at once, and the jobs would trade them.
void grant_ahead(Step& step, Job& job, RoomPool& pool) {
  if (job.settings.hard_user_limit() > Bytes{0}) return;
  const Bytes room = step.device().ledger.room(job.id);
  const Bytes rise = needed_room(job, step.device().ledger.capacity()) - room;
  const Bytes bytes = std::min({rise, pool.free, job.usage.spilled});
  if (bytes < kWorthAMessage || job.room.revoke.has_value()) return;
  grant_room(step, job, bytes, 0);
  pool.take(bytes);
  step.decide(job.id, "room",
              fmt::format("grows ahead of its lease, from {} to {}", to_string(room),
                          to_string(room + bytes)));
}

// Whether a holder will ask for more room: it still learns its sizes, or has less room than it
// needs.
bool does_a_holder_grow(const Table& table) {
  const Device& device = table.device;
  return std::any_of(device.lanes.begin(), device.lanes.end(), [&](const Lane& lane) {
    if (!lane.is_running()) return false;
    const Job& holder = table.at(lane.lease->job());
    return is_learning(holder) ||
           device.ledger.room(holder.id) < needed_room(holder, device.ledger.capacity());
  });
}

// While the lane is held, room that nobody else is short of goes to the first in line.
void grant_first_ahead(Step& step, const Lane& lane, RoomPool& pool) {
  const auto first = lane.waiting.first();
  if (!first.has_value() || !step.device().needs.empty()) return;
  if (does_a_holder_grow(step.table())) return;
  grant_ahead(step, step.table().at(first->id), pool);
}

// Another lane's next job does not count on what this one waits for.
void claim(const Device& device, const Lane& lane, const Job& job, RoomPool& pool) {
  const Bytes lacking = deficit_of(device, lane, job, pool) + pool.free;
  pool.take(std::clamp(lacking, Bytes{0}, pool.usable()));
}

// The room that the next job still lacks, after everything was done about it in this step.
struct Shortage {
  Bytes deficit;
  std::optional<ComingGiver> coming;  // waited for before anybody is asked
};

// Cuts pools and asks others for room. Nobody is asked while a job is about to park that gives
// first, because what another one gave meanwhile would come back sooner.
Shortage make_room(Step& step, const Job& job, Bytes deficit, RoomPool& pool) {
  Bytes missing = deficit - pool.expected;
  const Bytes cut = cut_before_copies(step, job, missing, pool);
  deficit -= cut;
  missing -= cut;
  if (missing <= Bytes{0}) return {deficit, {}};
  MemoryPlan plan(step.table(), job.id, step.now());
  if (const auto coming = plan.coming(missing)) return {deficit, coming};
  missing -= ask_as_planned(step, plan, missing, pool);
  return {deficit - shrink_pools(step, job, missing, pool), {}};
}

// Settles the room of the lane's next job. True: the job may have its lease now, since the room is
// there, or since waiting would not help. False: it waits, and it is said for what.
//
// The patience with others ends after memory_wait. Then the job gets its lease with what there is,
// and asks for the rest in its allocations.
bool settle_next_room(Step& step, Lane& lane, Job& job, RoomPool& pool) {
  Device& device = step.device();
  const Bytes lacking = deficit_of(device, lane, job, pool);
  if (lacking <= Bytes{0}) return true;
  const auto [deficit, coming] = make_room(step, job, lacking, pool);
  if (may_begin(step, job, deficit, pool)) return true;
  lane.note_short(step.now());
  const Nanos until = patience_ends(step.table(), *lane.short_since(), deficit);
  const std::string lack = fmt::format("{} is next, {} short", job.id.value, to_string(deficit));
  const auto say = [&](const std::string& what) {
    step.wait(job.id, lane.wait_reason,
              fmt::format("{}: {}{}", lack, what, held_by_suspended_text(step.table())));
  };
  if (coming.has_value()) {
    step.due(std::min(coming->until, until));
    say(fmt::format("waits until {} parks, which is used last", coming->job.value));
    return step.now() >= until;
  }
  // If somebody else is short too, the job would be asked for this room at once.
  if (pool.expected >= deficit && device.needs.empty()) grant_ahead(step, job, pool);
  if (pool.expected > Bytes{0}) {
    step.due(until);
    say("asked others to give room");
    return step.now() >= until;
  }
  lane.note_stuck(step.now());
  // Until now nothing moved: that was others' time, not what changing hands costs.
  if (lane.closed_at.has_value()) lane.closed_at = step.now();
  const JobId giver = later_giver(step.table(), job.id);
  if (giver == JobId{0} || step.now() >= until) return true;
  step.due(until);
  say(fmt::format("waits until {} parks, gives or leaves", giver.value));
  return false;
}

// The job gets the lane, and the others of its gang theirs along with it.
void grant_to(Step& step, Lane& lane, Job& job, RoomPool& pool) {
  grant_with(step, lane, job, pool);
  grant_along(step, lane, pool);
}

// A job was interrupted inside its iteration: it goes on, unless an urgent one comes before it and
// has its room already. No limit of its user's holds it: its boundary is ahead.
void serve_interrupted(Step& step, Lane& lane, JobId inside, RoomPool& pool) {
  lane.choose(JobId{0});
  const Job& interrupted = step.table().at(inside);
  const bool is_due = class_due(step.table(), lane) == interrupted.settings.priority &&
                      may_have_floor(step.table(), lane, interrupted);
  lane.due = is_due ? inside : JobId{0};
  const JobId first =
      is_due ? JobId{0} : first_urgent(step.table(), lane, interrupted, step.now(), pool);
  if (first != JobId{0}) return grant_to(step, lane, step.table().at(first), pool);
  if (interrupted.room.revoke.has_value()) return step.due(step.table().answer_due(interrupted));
  if (!interrupted.place.is_waiting()) return step.due(*lane.closed_at + kComesBack);
  grant_inside(step, lane, step.table().at(inside));
}

}  // namespace

// The holder computes with what it has. What follows is worth a message only if it is much, or the
// last of it.
void serve_owed(Step& step, Lane& lane, RoomPool& pool) {
  Device& device = step.device();
  if (!lane.is_running() || lane.lease->owed <= Bytes{0}) return;
  Lease& lease = *lane.lease;
  Job& job = step.table().at(lease.job());
  // One that comes back says what it has, and asks for the rest.
  if (!job.is_connected()) lease.owed = Bytes{0};
  // The holder is stopped in an allocation: what that waits for goes first.
  if (device.has_need(job.id)) return;
  const Bytes room = device.ledger.room(job.id);
  const Bytes lacking = std::max(needed_room(job, device.ledger.capacity()) - room, Bytes{0});
  lease.owed = std::min(lease.owed, lacking);
  const Bytes missing = lease.owed - pool.free - pool.expected;
  ask_for_room(step, job.id, missing, pool);
  // Room that nobody can give now does not follow the lease: the holder asks for it when it has use
  // for it.
  lease.owed = std::min(lease.owed, pool.usable());
  const Bytes bytes = std::min({lease.owed, pool.free, left_to_user(device, job)});
  const bool is_worth_it = bytes >= kWorthAMessage || bytes == lease.owed;
  if (bytes > Bytes{0} && is_worth_it && !job.room.revoke.has_value()) {
    grant_room(step, job, bytes, 0);
    pool.take(bytes);
    lease.owed -= bytes;
    lease.under_way += bytes;
    step.decide(job.id, "room",
                fmt::format("grows after its lease, from {} to {}", to_string(room),
                            to_string(room + bytes)));
  }
  pool.take(lease.owed);
}

void serve_lane(Step& step, Lane& lane, RoomPool& pool) {
  Device& device = step.device();
  lane.look_anew();
  if (lane.lease.has_value()) {
    grant_along(step, lane, pool);
    grant_first_ahead(step, lane, pool);
    return;
  }
  const bool may_draw = device.has_one_line() && !is_lane_closed(step.table(), lane);
  if (may_draw && !keep_free(step, lane)) draw_first(step, lane);
  if (!lane.waiting.empty()) {
    settle_unheard(step, lane);
    if (is_lane_unsettled(step.table(), lane) || keep_free(step, lane)) return;
  }
  const JobId inside = interrupted_in(step.table(), lane, step.now());
  // Where no turn is cut short, a job that stopped inside under another policy has its turn as any
  // other.
  if (inside != JobId{0} && device.policy->sharing().cuts_turns)
    return serve_interrupted(step, lane, inside, pool);
  const JobId next = choose(step, lane, pool);
  lane.choose(next);
  if (next == JobId{0}) {
    lane.closed_at.reset();  // what follows is no cost of changing hands
    return;
  }
  Job& job = step.table().at(next);
  if (job.place.is_inside) return grant_inside(step, lane, job);
  const bool is_settled = settle_next_room(step, lane, job, pool);
  const JobId other = fits_as_it_is(step.table(), lane, pool, step.now());
  if (other != JobId{0}) {
    say_host_full(
        step, job,
        fmt::format("Job {} is not refused: jobs now run one after the other, whole", next.value));
    return grant_to(step, lane, step.table().at(other), pool);
  }
  if (!is_settled) return claim(device, lane, job, pool);
  grant_to(step, lane, job, pool);
}

}  // namespace gpushare::sched
