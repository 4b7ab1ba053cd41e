// The budget is divided by the jobs that have bytes to move, as far as that is known: those that
// were asked for room, and those that were given room before their lease. It holds only while some
// job has a lease and nobody waits for bytes. Otherwise all bytes move at full speed.
//
// A job that is held back cannot be blamed for being late. So the time that others wait for its
// answer begins anew when it is held back no longer.
#include "csrc/sched/memory/transfer.h"

#include <algorithm>
#include <cstdint>

namespace gpushare::sched {
namespace {

bool is_lease_open(const Device& device) {
  return std::any_of(device.lanes.begin(), device.lanes.end(),
                     [](const Lane& lane) { return lane.lease.has_value(); });
}

// Whether the job has bytes to move, as far as is known: it was asked for room, or was given room
// ahead of its lease.
bool has_bytes_to_move(const Device& device, const Job& job) {
  const bool has_room_ahead = job.place.is_waiting() && job.usage.spilled > Bytes{0} &&
                              device.ledger.room(job.id) > job.usage.resident;
  return job.room.revoke.has_value() || has_room_ahead;
}

std::int64_t num_movers(const Table& table) {
  return std::count_if(table.jobs.begin(), table.jobs.end(), [&](const auto& entry) {
    return has_bytes_to_move(table.device, entry.second);
  });
}

Bytes rate_now(const Table& table) {
  if (!is_lease_open(table.device) || table.device.is_anybody_short()) return {};
  const std::int64_t num = std::max<std::int64_t>(num_movers(table), 1);
  return std::max(table.options.transfer_budget / num, Bytes{1});
}

}  // namespace

// Called twice a step: who waits for bytes changes when leases are granted.
void settle_transfer_rate(Step& step) {
  Device& device = step.device();
  if (step.table().options.transfer_budget == Bytes{0}) return;
  device.transfer_rate = rate_now(step.table());
  for (const JobId id : JobRecords::Ids(step.table().jobs.kept().giving)) {
    Job& job = step.table().at(id);
    const bool is_held_back = transfer_rate(device, job) > Bytes{0};
    if (job.room.revoke->is_held_back && !is_held_back) job.room.revoke->sent_at = step.now();
    job.room.revoke->is_held_back = is_held_back;
  }
}

Bytes transfer_rate(const Device& device, const Job& job) {
  return device.lane_held_by(job.id) == nullptr ? device.transfer_rate : Bytes{0};
}

}  // namespace gpushare::sched
