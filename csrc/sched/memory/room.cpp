// The arithmetic of room: what a job needs for its next iteration, what it lacks, and what of that
// is free or on its way.
//
// A job needs what its page says its iterations need at most, never more than the device or its
// limits. What it lacks beyond its room is its growth. What of the growth is not free is its
// deficit. If other processes hold some of the device, a job that need not grow has no deficit: it
// runs in the room that it has.
//
// RoomPool is how one step divides what is free. Whoever is served earlier in the step takes from
// it first, whether the bytes are there or only expected from jobs that were asked. So the order in
// which serve() calls its parts is the order of claims.
#include "csrc/sched/memory/room.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/user_room.h"

namespace gpushare::sched {
namespace {

std::string ledger_label(const Job& job) {
  const std::string name = job.who.name.empty() ? fmt::format("pid {}", job.who.pid) : job.who.name;
  return fmt::format("job {} u{}/{}", job.id.value, job.who.uid, name);
}

// " job 3 u7/gpt 1.1 GiB, 5 more 2.0 GiB,": the `most` who hold most, and the sum of the others.
template <typename Name>
std::string largest_text(std::vector<std::pair<Bytes, std::int64_t>> holders,
                         std::size_t most,
                         const std::string& remark,
                         const Name& name) {
  // The largest first; of those who hold as much, the lower number.
  std::ranges::sort(holders, [](const auto& a, const auto& b) {
    return std::pair(b.first, a.second) < std::pair(a.first, b.second);
  });
  const std::size_t num_named = std::min(holders.size(), most);
  std::string text;
  Bytes unnamed;
  for (const auto& [bytes, number] : std::span(holders).first(num_named))
    text += fmt::format(" {} {}{},", name(number), to_string(bytes), remark);
  for (const auto& [bytes, number] : std::span(holders).subspan(num_named))
    unnamed += bytes;
  if (holders.size() == num_named) return text;
  return text +
         fmt::format(" {} more {}{},", holders.size() - num_named, to_string(unnamed), remark);
}

// The memory of unmanaged processes is not in the ledger, and may be the reason why the capacity is
// small.
std::string unmanaged_text(const Table& table) {
  constexpr std::size_t kMostNamed = 4;
  std::vector<std::pair<Bytes, std::int64_t>> processes;
  for (const UnmanagedProcess& process : table.unmanaged)
    processes.emplace_back(process.resident, process.pid);
  return largest_text(std::move(processes), kMostNamed, " (unmanaged)",
                      [](std::int64_t pid) { return fmt::format("pid {}", pid); });
}

std::string jobs_text(const Table& table, JobId except) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::pair<Bytes, std::int64_t>> others;
  for (const auto& [id, room] : table.device.ledger.rooms()) {
    if (id != except && room > Bytes{0}) {
      others.emplace_back(room, static_cast<std::int64_t>(id.value));
    }
  }
  return largest_text(std::move(others), kMostNamed, "", [&](std::int64_t id) {
    return ledger_label(table.at(JobId{static_cast<std::uint64_t>(id)}));
  });
}

}  // namespace

void RoomPool::take(Bytes bytes) {
  const Bytes now = std::clamp(free, Bytes{0}, std::max(bytes, Bytes{0}));
  GS_DCHECK(bytes <= free + expected || bytes <= Bytes{0}, "{} of {} and {}", to_string(bytes),
            to_string(free), to_string(expected));
  free -= now;
  expected -= bytes - now;
}

// Answers that are overdue are not counted on, though they may still come.
RoomPool room_pool(const Table& table, Nanos now) {
  RoomPool pool{table.device.ledger.free(), Bytes{0}};
  for (const JobId id : table.jobs.kept().giving) {
    const Job& job = table.at(id);
    if (!table.has_missed_answer(job, now)) pool.expected += job.room.revoke->bytes;
  }
  return pool;
}

// The page may say that a job is parked before its message does. A job inside an iteration is not,
// although it waits: its activations are live.
bool is_parked(const Device& device, const Job& job) {
  if (!job.is_connected() || job.place.is_inside) return false;
  return job.place.is_waiting() || job.place.waits_aside() ||
         (job.usage.is_parked && device.lane_held_by(job.id) == nullptr);
}

Bytes needed_room(const Job& job, Bytes capacity) {
  Bytes needed = std::min(std::max(job.usage.need, job.usage.live), capacity);
  const Bytes most = job.settings.most_memory();
  if (most > Bytes{0}) needed = std::min(needed, most - job.room.lane);
  return needed;
}

Bytes most_more(const Device& device, const Job& job) {
  const Bytes room = device.ledger.room(job.id);
  Bytes most = device.ledger.capacity() - room;
  const Bytes limit = job.settings.most_memory();
  if (limit > Bytes{0}) most = std::min(most, limit - room - job.room.lane);
  return std::max(std::min(most, left_to_user(device, job)), Bytes{0});
}

Bytes growth_of(const Device& device, const Lane& lane, const Job& job) {
  const Bytes room = device.ledger.room(job.id);
  const Bytes rise = std::max(needed_room(job, device.ledger.capacity()) - room, Bytes{0});
  const Bytes lack = lane_lack(lane, job);
  // Together with the slots that it has, a job can grow to the whole device and no further.
  const Bytes most = device.ledger.capacity() - room - (job.room.lane - lack);
  return std::min(rise + lack, std::max(most, Bytes{0}));
}

Bytes deficit_of(const Device& device, const Lane& lane, const Job& job, const RoomPool& pool) {
  const Bytes growth = growth_of(device, lane, job);
  // Memory that other processes hold keeps only those jobs waiting that must grow.
  if (growth == Bytes{0} && device.ledger.withheld() > Bytes{0}) return {};
  return growth - pool.free;
}

// Spilled memory that the iteration uses late can be restored while it runs.
Bytes late_room(const Job& job) { return std::min(job.usage.late, job.usage.spilled); }

Nanos patience_ends(const Table& table, Nanos since, Bytes lacking) {
  const bool could_help = lacking <= table.device.held_up;
  return (could_help ? std::max(since, table.device.held_up_until) : since) +
         table.options.memory_wait;
}

Bytes lacking_for(const Device& device, const WaitingNeed& need) {
  return need.bytes - std::max(device.ledger.free(), Bytes{0});
}

// The reader wants to know whom to ask, so the largest holders are named, and what is nobody's.
std::string ledger_text(const Table& table, JobId except) {
  const Device& device = table.device;
  std::string text =
      fmt::format("device {} ({}):", device.name, to_string(device.ledger.capacity())) +
      jobs_text(table, except);
  if (device.ledger.pools() > Bytes{0}) {
    text += fmt::format(" shared by a lane's jobs {},", to_string(device.ledger.pools()));
  }
  if (device.ledger.withheld() > Bytes{0}) {
    text += fmt::format(" other processes and CUDA contexts {},", to_string(device.held_by_others));
  }
  text += unmanaged_text(table);
  return text + fmt::format(" free {}", to_string(std::max(device.ledger.free(), Bytes{0})));
}

}  // namespace gpushare::sched
