// How a lease is granted.
//
// 1. The job gets its room, as far as it is free. What it uses late in its iteration may follow the
//    lease, as far as it is on its way.
// 2. The job is told which slots of the lane it may use.
// 3. What depends on the last holder and on the wait of the job is noted: what its return cost,
//    whose turn it was, and what changing hands took. The lease forgets both.
// 4. The lease begins, and the page of the job says so.
#include "csrc/sched/turns/grant.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/room_messages.h"
#include "csrc/sched/memory/user_room.h"
#include "csrc/sched/time/class_floor.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/interrupt.h"

namespace gpushare::sched {
namespace {

// Changing hands costs what passes between the end of one lease and the grant of the next, as far
// as the next job waited then. It is the next job's cost if the lane came from another job.
void note_switch(Lane& lane, Job& job, Nanos now) {
  const bool is_switch = lane.last_holder != JobId{0} && lane.last_holder != job.id;
  if (is_switch) ++lane.switches;
  job.measured.handover = Nanos{0};
  if (!lane.closed_at.has_value()) return;
  lane.last_handover = now - std::max(*lane.closed_at, job.place.waiting_since);
  if (is_switch) job.measured.handover = lane.last_handover;
}

// The order matters: what the job's return cost, and whose turn it was, follow from the last holder
// and from how long the job has waited. Both are forgotten when the lease begins.
void grant_lease(Step& step, Lane& lane, Job& job, const std::string& remark) {
  const Nanos now = step.now();
  const std::size_t num_waiting = lane.waiting.size();
  for (const PolicyRule* const rule : step.device().policy->rules())
    rule->note_begin(step.table(), lane, job, now);
  note_switch(lane, job, now);
  const FloorTurn floor_turn = floor_turn_of(step.table(), lane, job, now);
  note_granted(step.device(), lane, job);
  lane.waiting.erase(job.id);
  job.note_granted(now);
  const Nanos turn_before = std::exchange(job.served.turn_before, Nanos{});
  const bool goes_on = job.place.is_inside;
  end_inside(step, job, true);
  lane.begin_lease(Lease(job.id, now), now);
  // A turn that goes on has had a part of its quantum before. A new turn has a whole one.
  if (goes_on) lane.lease->turn_before = turn_before;
  lane.lease->busy_before = job.usage.busy;
  lane.lease->floor_turn = floor_turn;
  lane.due = JobId{0};
  note_begun(*lane.lease, job);
  step.act({PageAction::Kind::kGrant, job.id, job.served.term, job.room.last_grant_n});
  const std::string others =
      num_waiting > 1 ? fmt::format("first of {} in line", num_waiting) : "alone in line";
  lane.lease->granted_for =
      fmt::format("{}, by {}{}", others, step.device().policy->name(), remark);
  step.decide(job.id, "grant", lane.lease->granted_for);
}

}  // namespace

// Resumes an interrupted iteration: the memory of the job is still in place. If no other job had
// the lane in between, the job stopped for nothing, so this lease is not interrupted again.
void grant_inside(Step& step, Lane& lane, Job& job) {
  const bool was_for_nobody = lane.last_holder == job.id;
  grant_lease(step, lane, job, ", inside its iteration");
  lane.lease->is_for_boundary = was_for_nobody;
}

// The job gets its room before its lease, out of what is free. What it does not use from the
// beginning may follow (owed), as far as it is on its way.
void grant_with(Step& step, Lane& lane, Job& job, RoomPool& pool) {
  Device& device = step.device();
  const Bytes room = device.ledger.room(job.id);
  const Bytes needed = needed_room(job, device.ledger.capacity());
  // Slots of the lane are used from the first kernel on, and late room is not. So if some room may
  // follow the lease, the slots come first.
  const Bytes slots = late_room(job) > Bytes{0} ? lane_lack(lane, job) : Bytes{0};
  const Bytes left = left_to_user(device, job) - slots;
  const Bytes rise = std::max(std::min({needed - room, pool.free - slots, left}), Bytes{0});
  const Bytes owed = std::max(
      std::min({needed - room - rise, late_room(job), pool.expected, left - rise}), Bytes{0});
  std::string remark;
  if (rise > Bytes{0}) {
    grant_room(step, job, rise, 0);
    pool.take(rise);
    remark = fmt::format("; its room grows from {} to {}", to_string(room), to_string(room + rise));
  }
  if (owed > Bytes{0}) {
    remark += fmt::format(", {} follow for what it uses late", to_string(owed));
  } else if (room + rise < needed) {
    remark += fmt::format(", which is {} less than it needs", to_string(needed - room - rise));
  }
  tell_lane(step, lane, job, pool);
  grant_lease(step, lane, job, remark);
  lane.lease->owed = std::clamp(owed, Bytes{0}, pool.usable());
  pool.take(lane.lease->owed);
}

}  // namespace gpushare::sched
