// Everything that must hold between two steps, checked after each step in tests. A check stands
// here, and not beside a mutator, if it is about several structures: the record of a job against
// its lane's table, its order key against the policy, the ledger against the pools, indexes against
// what they index.
#include "csrc/sched/serve/invariants.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/gang.h"

namespace gpushare::sched {
namespace {

// What a job's record says of its place in line, its gang and its room is said somewhere else too:
// in its lane's table, in the device's gangs, in the ledger. The two must be the same.
void check_job(const Table& table, const Job& job) {
  const Device& device = table.device;
  const Lane& lane = device.lane_of(job);
  const auto id = job.id.value;
  GS_CHECK(job.settings.weight > 0, "job {} weighs {}", id, job.settings.weight);
  GS_CHECK(job.who.of.job == job.id, "job {} has address {}", id, job.who.of.job.value);
  GS_CHECK(device.ledger.rooms().contains(job.id), "job {} is not in the ledger", id);
  GS_CHECK(lane.waiting.contains(job.id) == job.place.is_waiting(), "job {} waiting {}", id,
           job.place.is_waiting());
  // A job is in the line of one lane, and nowhere else.
  for (const Lane& other : device.lanes) {
    const bool is_there = other.waiting.contains(job.id) || other.next() == job.id ||
                          (other.lease.has_value() && other.lease->job() == job.id);
    GS_CHECK(!is_there || other.id == lane.id, "job {} of lane {} is in {}", id, lane.id.value,
             other.id.value);
  }
  GS_CHECK(job.may_queue() || !job.place.is_waiting(), "job {} waits, paused {}", id,
           job.settings.is_paused());
  // Jobs that wait aside (paused, or at a limit) stand in no line, and come back into it later.
  if (job.place.waits_aside()) {
    GS_CHECK(!job.may_queue() && job.has_page(), "job {} waits", id);
    GS_CHECK(device.lane_held_by(job.id) == nullptr, "job {} waits and holds", id);
  }
  if (job.place.waits_in_gang()) {
    GS_CHECK(job.has_page() && !job.place.is_waiting(), "job {} waits", id);
    const bool may_wait = !job.settings.is_paused() || is_gang_running(table, job);
    GS_CHECK(may_wait && device.lane_held_by(job.id) == nullptr, "job {} waits", id);
  }
  const JobSet gang = gang_of(device, job);
  const bool is_there = std::find(gang.begin(), gang.end(), job.id) != gang.end();
  const bool is_member = is_in_gang(job) && job.has_page();
  GS_CHECK(is_there == is_member, "job {} in gang {}", id, job.who.of.gang);
  if (job.place.is_waiting()) {
    GS_CHECK(job.has_page(), "job {} waits", id);
    GS_CHECK(device.lane_held_by(job.id) == nullptr, "job {} waits and holds", id);
    // A key changes only with its record, and then the table is told.
    GS_CHECK(lane.waiting.key_of(job.id) == order_key(device, job), "job {} has an old key", id);
  }
  GS_CHECK(job.room.last_grant_n <= job.room.last_n, "job {}: {} of {}", id, job.room.last_grant_n,
           job.room.last_n);
  // An open Revoke asks for no more than the job has, and is the last that was sent to it at most.
  if (job.room.revoke.has_value()) {
    GS_CHECK(job.is_connected() && job.room.revoke->n <= job.room.last_n, "job {} revoke {}", id,
             job.room.revoke->n);
    GS_CHECK(job.room.revoke->bytes <= device.ledger.room(job.id), "job {}: {} of {}", id,
             to_string(job.room.revoke->bytes), to_string(device.ledger.room(job.id)));
  }
}

// A lane names jobs by their numbers, so each of them must still be there. All who hold it are one
// gang.
void check_lane(const Table& table, const Lane& lane) {
  lane.check_invariants();
  for (const OrderKey& key : lane.waiting)
    GS_CHECK(table.find(key.id) != nullptr, "job {} waits and is gone", key.id.value);
  if (lane.lease.has_value()) {
    const Job* holder = table.find(lane.lease->job());
    GS_CHECK(holder != nullptr, "job {} holds and is gone", lane.lease->job().value);
    for (const Lease::Along& along : lane.lease->along()) {
      const Job* const other = table.find(along.job);
      GS_CHECK(other != nullptr && are_together(*holder, *other), "job {} holds along with {}",
               along.job.value, holder->id.value);
    }
    GS_CHECK(holder->served.term > Term{0}, "job {} holds term 0", holder->id.value);
  }
}

// A slot is in one pool, or is kept by one job, or is in nobody's use. And the ledger counts the
// same bytes for pools as the pools have.
void check_pools(const Table& table) {
  const Device& device = table.device;
  Bytes sum;
  std::map<std::uint32_t, std::size_t> num_used;
  for (const Lane& lane : device.lanes) {
    for (const auto& [uid, pool] : lane.pools) {
      pool.check_invariants();
      sum += pool.bytes();
      num_used[uid] += pool.size();
      for (const auto& [id, member] : pool.members()) {
        const Job* const job = table.find(id);
        GS_CHECK(job != nullptr && job->who.uid == uid, "job {} is no job of user {}", id.value,
                 uid);
        GS_CHECK(job->place.in_lane == lane.id, "job {} is no job of lane {}", id.value,
                 lane.id.value);
        num_used[uid] += member.donated.size();
        GS_CHECK(member.num_chunks == 0 || job->is_registered() || !job->is_connected(),
                 "job {} has {} lane chunks", id.value, member.num_chunks);
      }
    }
  }
  // Each pool's numbers are used; so if there are as many, no two pools have the same.
  for (const auto& [uid, numbers] : device.slot_numbers) {
    GS_CHECK(num_used[uid] == numbers.used().size(), "user {}: {} slots, {} numbers", uid,
             num_used[uid], numbers.used().size());
  }
  GS_CHECK(sum == device.ledger.pools(), "sum {} ledger {}", to_string(sum),
           to_string(device.ledger.pools()));
}

}  // namespace

// Each structure checks itself. What is about two of them is checked here.
void check_invariants(const Table& table) {
  const Device& device = table.device;
  device.ledger.check_invariants();
  check_pools(table);
  for (const Lane& lane : device.lanes)
    check_lane(table, lane);
  GS_CHECK(!device.only_free.has_value(), "need {} of {} has no answer", device.only_free->n,
           device.only_free->job.value);
  for (const WaitingNeed& need : device.needs) {
    const Job* job = table.find(need.job);
    GS_CHECK(job != nullptr && job->is_connected(), "job {} has need {}", need.job.value, need.n);
  }
  GS_CHECK(std::ranges::is_sorted(device.needs, {}, &WaitingNeed::job), "{} needs, unsorted",
           device.needs.size());
  for (const auto& [id, room] : device.ledger.rooms())
    GS_CHECK(table.find(id) != nullptr, "job {} has {} and is gone", id.value, to_string(room));
  table.jobs.check_invariants();
  std::size_t num_inside = device.inside.size();
  for (const auto& [id, job] : table.jobs) {
    check_job(table, job);
    GS_CHECK(job.who.of.device == device.name, "job {} is on '{}'", id.value, job.who.of.device);
    GS_CHECK(job.place.is_inside == device.inside.contains(id), "job {} inside", id.value);
    GS_CHECK(job.row.has_value() == device.ranks.contains(id), "job {} a rank", id.value);
    if (job.place.is_inside) --num_inside;
  }
  GS_CHECK(num_inside == 0, "{} more jobs are inside", num_inside);
}

}  // namespace gpushare::sched
