#include "csrc/sched/transfer.h"

#include <algorithm>
#include <cstdint>

namespace gpushare::sched {
namespace {

bool is_lease_open(const Device& device) {
  return std::any_of(device.lanes.begin(), device.lanes.end(),
                     [](const Lane& lane) { return lane.lease.has_value(); });
}

// As far as is known: it was asked for room, or has room ahead of its lease.
bool has_bytes_to_move(const Device& device, const Job& job) {
  const bool has_room_ahead = job.is_waiting && job.usage.spilled > Bytes{0} &&
                              device.ledger.room(job.id) > job.usage.resident;
  return job.revoke.has_value() || has_room_ahead;
}

std::int64_t num_movers(const Table& table, const Device& device) {
  return std::count_if(table.jobs.begin(), table.jobs.end(), [&](const auto& entry) {
    return entry.second.of.device == device.name && has_bytes_to_move(device, entry.second);
  });
}

}  // namespace

Bytes transfer_rate(const Table& table, const Job& job) {
  const Bytes budget = table.options.transfer_budget;
  if (budget == Bytes{0}) return {};
  const Device& device = table.device_of(job);
  if (!is_lease_open(device) || device.lane_held_by(job.id) != nullptr) return {};
  if (device.is_anybody_short()) return {};
  return std::max(budget / std::max<std::int64_t>(num_movers(table, device), 1), Bytes{1});
}

void note_held_back(Step& step, const Device& device) {
  for (auto& [id, job] : step.table().jobs) {
    if (job.of.device != device.name || !job.revoke.has_value()) continue;
    const bool is_held_back = transfer_rate(step.table(), job) > Bytes{0};
    if (job.revoke->is_held_back && !is_held_back) job.revoke->sent_at = step.now();
    job.revoke->is_held_back = is_held_back;
  }
}

}  // namespace gpushare::sched
