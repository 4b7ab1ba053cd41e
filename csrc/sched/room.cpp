#include "csrc/sched/room.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sched/host_tier.h"

namespace gpushare::sched {
namespace {

bool may_be_asked(const Device& device, const Job& job, JobId claimant) {
  return job.id != claimant && job.is_connected && !job.cannot_give && !job.revoke.has_value() &&
         device.ledger.room(job.id) > Bytes{0};
}

// Without a lease and stopped in an allocation, it can be spilled until its Need is met (see
// WaitingNeed). It gives to a holder, whose boundary everybody waits for, and to a job that came
// before it: so of jobs that wait for each other one goes on, and always the same one. By the age
// of their Needs they would take turns, and spill each other for every tensor they make.
bool gives_blocked(const Device& device, const Job& job, JobId claimant) {
  if (device.lane_held_by(job.id) != nullptr || !device.has_need(job.id)) return false;
  if (!device.has_need(claimant)) return false;
  return device.lane_held_by(claimant) != nullptr || claimant < job.id;
}

// A holder needs its memory until its boundary.
bool gives_unparked(const Device& device, const Job& job, Nanos now) {
  return device.lane_held_by(job.id) == nullptr && !device.has_need(job.id) &&
         now >= job.spared_until;
}

// What of the host tier is worth using for `deficit`: nothing where even all of it would not do, so
// that nobody's bytes are copied for a lease that cannot be granted.
Bytes host_to_use(const Table& table,
                  const Device& device,
                  const std::vector<std::pair<OrderKey, const Job*>>& givers,
                  Bytes deficit) {
  const Bytes free = std::max(host_free(table), Bytes{0});
  Bytes to_drop;
  Bytes to_spill;
  for (const auto& [key, job] : givers) {
    to_drop += droppable(device, *job);
    to_spill += device.ledger.room(job->id) - droppable(device, *job);
  }
  return to_spill > free && to_drop + free < deficit ? Bytes{0} : free;
}

std::string ledger_label(const Job& job) {
  const std::string name = job.name.empty() ? fmt::format("pid {}", job.pid) : job.name;
  return fmt::format("job {} u{}/{}", job.id.value, job.uid, name);
}

// The largest; what they hold is not in the ledger, and may be why the capacity is what it is.
std::string unmanaged_text(const Table& table) {
  constexpr std::size_t kMaxNamed = 4;
  std::vector<UnmanagedProcess> processes = table.unmanaged;
  std::sort(processes.begin(), processes.end(), [](const auto& a, const auto& b) {
    return a.resident != b.resident ? a.resident > b.resident : a.pid < b.pid;
  });
  std::string text;
  Bytes unnamed;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (i < kMaxNamed) {
      text += fmt::format(" pid {} {} (unmanaged),", processes[i].pid,
                          to_string(processes[i].resident));
    } else {
      unnamed += processes[i].resident;
    }
  }
  if (processes.size() <= kMaxNamed) return text;
  return text +
         fmt::format(" {} more {} (unmanaged),", processes.size() - kMaxNamed, to_string(unnamed));
}

}  // namespace

void RoomPool::take(Bytes bytes) {
  const Bytes now = std::clamp(free, Bytes{0}, std::max(bytes, Bytes{0}));
  GS_DCHECK(bytes <= free + expected || bytes <= Bytes{0}, "{} of {} and {}", to_string(bytes),
            to_string(free), to_string(expected));
  free -= now;
  expected -= bytes - now;
}

RoomPool room_pool(const Table& table, const Device& device, Nanos now) {
  RoomPool pool{device.ledger.free(), Bytes{0}};
  for (const auto& [id, room] : device.ledger.rooms()) {
    const Job& job = table.at(id);
    if (job.revoke.has_value() && !table.is_overdue(job, now)) pool.expected += job.revoke->bytes;
  }
  return pool;
}

bool is_parked(const Device& device, const Job& job) {
  if (!job.is_connected) return false;
  return job.is_waiting || (job.usage.is_parked && device.lane_held_by(job.id) == nullptr);
}

Bytes needed_room(const Job& job, Bytes capacity) {
  Bytes needed = std::min(std::max(job.usage.need, job.usage.live), capacity);
  if (job.memory_limit > Bytes{0}) needed = std::min(needed, job.memory_limit);
  return needed;
}

std::vector<Giving> plan_revokes(
    const Table& table, const Device& device, JobId claimant, Bytes deficit, Nanos now) {
  std::vector<std::pair<OrderKey, const Job*>> parked;
  std::vector<std::pair<OrderKey, const Job*>> others;
  std::vector<std::pair<OrderKey, const Job*>> blocked;
  for (const auto& [id, room] : device.ledger.rooms()) {
    const Job& job = table.at(id);
    if (!may_be_asked(device, job, claimant)) continue;
    if (is_parked(device, job)) {
      parked.emplace_back(device.policy->key(job), &job);
    } else if (gives_unparked(device, job, now)) {
      others.emplace_back(device.policy->key(job), &job);
    } else if (gives_blocked(device, job, claimant)) {
      blocked.emplace_back(device.policy->key(job), &job);
    }
  }
  const auto is_further = [](const auto& a, const auto& b) { return a.first > b.first; };
  std::sort(parked.begin(), parked.end(), is_further);
  std::sort(others.begin(), others.end(), is_further);
  std::sort(blocked.begin(), blocked.end(), is_further);
  parked.insert(parked.end(), others.begin(), others.end());
  parked.insert(parked.end(), blocked.begin(), blocked.end());
  std::vector<Giving> plan;
  Bytes host = host_to_use(table, device, parked, deficit);
  for (const auto& [key, job] : parked) {
    if (deficit <= Bytes{0}) break;
    const Bytes bytes = std::min(deficit, most_to_ask(device, *job, host));
    if (bytes <= Bytes{0}) continue;
    plan.push_back({job->id, bytes});
    deficit -= bytes;
    host -= spill_of(device, *job, bytes, host);
  }
  return plan;
}

JobId later_giver(const Table& table, const Device& device, JobId claimant) {
  for (const auto& [id, room] : device.ledger.rooms()) {
    if (id == claimant || room == Bytes{0}) continue;
    const Job& job = table.at(id);
    if (!is_parked(device, job) || job.revoke.has_value()) return id;
  }
  return JobId{0};
}

std::string ledger_text(const Table& table, const Device& device, JobId except) {
  constexpr std::size_t kMaxNamed = 8;
  std::vector<std::pair<Bytes, JobId>> others;
  for (const auto& [id, room] : device.ledger.rooms()) {
    if (id != except && room > Bytes{0}) others.emplace_back(room, id);
  }
  std::sort(others.begin(), others.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string text =
      fmt::format("device {} ({}):", device.name, to_string(device.ledger.capacity()));
  Bytes unnamed;
  for (std::size_t i = 0; i < others.size(); ++i) {
    const auto& [room, id] = others[i];
    if (i < kMaxNamed) {
      text += fmt::format(" {} {},", ledger_label(table.at(id)), to_string(room));
    } else {
      unnamed += room;
    }
  }
  if (others.size() > kMaxNamed) {
    text += fmt::format(" {} more {},", others.size() - kMaxNamed, to_string(unnamed));
  }
  if (device.ledger.pools() > Bytes{0}) {
    text += fmt::format(" shared by a lane's jobs {},", to_string(device.ledger.pools()));
  }
  text += unmanaged_text(table);
  return text + fmt::format(" free {}", to_string(std::max(device.ledger.free(), Bytes{0})));
}

}  // namespace gpushare::sched
