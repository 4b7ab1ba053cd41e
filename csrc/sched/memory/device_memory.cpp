// How much of the device is believed to be others'.
//
// What a job says to be free is right at one moment only, and the books of the other jobs are of
// another moment. So a report gives two bounds. If all our other jobs have backed their whole room,
// others hold the least. If each of them has backed only what it said last, less what it was asked
// to give, others hold the most. What was believed before is kept as long as it lies between the
// bounds, within a hysteresis. Without that, the capacity would change with each report, and jobs
// would be asked for memory back and forth.
//
// The size of the device is voted on by users, not by jobs: one user with many jobs has one vote.
// What was configured has a vote too.
#include "csrc/sched/memory/device_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/wire/limits.h"

namespace gpushare::sched {
namespace {

// Bounds of how many bytes our jobs have backed.
struct Bounds {
  Bytes least;
  Bytes most;
};

// The reporter's own bytes are of the same moment as its report, so they widen no bound.
Bounds backed_by_jobs(const Table& table, const Job& reporter) {
  // Slots of a lane's pool are backed as they are used.
  Bounds backed{Bytes{0}, table.device.ledger.pools()};
  for (const auto& [id, room] : table.device.ledger.rooms()) {
    const Job& job = table.at(id);
    if (id == reporter.id) {
      backed.least += job.usage.resident;
      backed.most += job.usage.resident;
      continue;
    }
    // Memory that the job was asked for may be gone already.
    const Bytes going = job.room.revoke.has_value() ? job.room.revoke->bytes : Bytes{0};
    backed.least += std::max(std::min(job.usage.resident, room) - going, Bytes{0});
    backed.most += room;
  }
  return backed;
}

// The ledger keeps a chunk at least, as it was made.
Bytes to_withhold(const Table& table) {
  const Device& device = table.device;
  const Bytes left = device.total - device.held_by_others - table.options.reserve;
  const Bytes configured = device.ledger.configured();
  const Bytes less = round_up(std::max(configured - left, Bytes{0}), wire::kLaneSlotBytes);
  return std::clamp(less, Bytes{0}, std::max(configured - wire::kLaneSlotBytes, Bytes{0}));
}

// The claim in the middle is believed. If their number is even, it is the upper one: what was
// configured may be less than the device has.
Bytes believed_total(const Table& table) {
  std::map<std::uint32_t, Bytes> by_user;
  for (const auto& [id, room] : table.device.ledger.rooms()) {
    const Job& job = table.at(id);
    if (job.who.device_total > Bytes{0}) {
      by_user[job.who.uid] = std::max(by_user[job.who.uid], job.who.device_total);
    }
  }
  if (by_user.empty()) return Bytes{0};
  std::vector<Bytes> claims{table.device.ledger.configured() + table.options.reserve};
  for (const auto& [uid, total] : by_user)
    claims.push_back(total);
  const auto middle = claims.begin() + static_cast<std::ptrdiff_t>(claims.size() / 2);
  std::nth_element(claims.begin(), middle, claims.end());
  return *middle;
}

}  // namespace

// If nobody knows the device's size any more, what others hold is not known either.
void on_device_total(Step& step) {
  Device& device = step.device();
  const Bytes total = believed_total(step.table());
  if (total == device.total) return;
  device.total = total;
  if (total > Bytes{0}) return;  // the next report of what is free counts on from it
  device.held_by_others = Bytes{0};
  device.ledger.withhold(Bytes{0});
}

// The belief moves no further than to the nearer bound, and only if it lies clearly outside.
void on_device_free(Step& step, const Job& job, Bytes free) {
  Device& device = step.device();
  if (device.total <= Bytes{0} || free <= Bytes{0} || free > device.total) return;
  const Bounds backed = backed_by_jobs(step.table(), job);
  const Bytes used = device.total - free;
  const Bytes most = std::max(used - backed.least, Bytes{0});
  const Bytes least = std::max(used - backed.most, Bytes{0});
  if (device.held_by_others > most + kDeviceHysteresis) {
    device.held_by_others = most;
  } else if (device.held_by_others + kDeviceHysteresis < least) {
    device.held_by_others = least;
  }
  const Bytes before = device.ledger.capacity();
  device.ledger.withhold(to_withhold(step.table()));
  const Bytes now = device.ledger.capacity();
  if (now == before) return;
  step.decide(job.id, "device",
              fmt::format("{} for jobs, {} before: others hold {}", to_string(now),
                          to_string(before), to_string(device.held_by_others)));
}

std::string withheld_text(const Device& device) {
  const Bytes withheld = device.ledger.withheld();
  if (withheld == Bytes{0}) return {};
  return fmt::format(
      "the device has {} less for jobs than the configured {}: other processes and the jobs' own "
      "CUDA contexts hold {} of it. See: nvidia-smi",
      to_string(withheld), to_string(device.ledger.configured()), to_string(device.held_by_others));
}

}  // namespace gpushare::sched
