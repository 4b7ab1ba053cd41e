// What random tests read off a snapshot's rows.
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include "csrc/base/units.h"
#include "csrc/sched/report/snapshot.h"

namespace gpushare::sched::testing {

inline Bytes room_of(const DeviceRow& device, std::uint32_t uid) {
  Bytes sum;
  for (const JobRow& job : device.jobs)
    if (job.who.uid == uid) sum += job.room;
  return sum;
}

// With the slots that the pool lacks for it.
inline bool fits(const DeviceRow& device, const JobRow& job) {
  Bytes needed = std::min(std::max(job.usage.need, job.usage.live), device.capacity);
  if (job.settings.memory_limit > Bytes{0} && !job.settings.is_elastic) {
    needed = std::min(needed, job.settings.memory_limit - job.lane);
  }
  // The lane's pools are of all users: his is what his jobs do not hold as room.
  Bytes pool = device.lanes.at(job.in_lane.value).pool;
  for (const UserRow& user : device.users)
    if (user.uid == job.who.uid) pool = std::min(pool, user.memory - room_of(device, user.uid));
  const Bytes lack = std::max(job.lane - pool, Bytes{0});
  const Bytes most = device.capacity - job.room - (job.lane - lack);
  const Bytes rise = std::max(needed - job.room, Bytes{0}) + lack;
  const Bytes growth = std::min(rise, std::max(most, Bytes{0}));
  for (const UserRow& user : device.users) {
    const bool is_his = user.uid == job.who.uid && user.memory_limit > Bytes{0};
    if (is_his && growth > Bytes{0} && growth > user.memory_limit - user.memory) return false;
  }
  return growth <= device.free || (growth == Bytes{0} && device.withheld > Bytes{0});
}

inline bool is_any_held(const DeviceRow& device) {
  return std::any_of(device.lanes.begin(), device.lanes.end(),
                     [](const LaneRow& lane) { return lane.holder != JobId{0}; });
}

// Null: there is none.
inline const JobRow* row_of(const DeviceRow& device, JobId job) {
  const auto row = std::find_if(device.jobs.begin(), device.jobs.end(),
                                [&](const JobRow& each) { return each.who.of.job == job; });
  return row == device.jobs.end() ? nullptr : &*row;
}

inline std::string state_of(const DeviceRow& device, JobId job) {
  const JobRow* const row = row_of(device, job);
  return row == nullptr ? "" : row->state;
}

inline std::string gang_of(const DeviceRow& device, JobId job) {
  const JobRow* const row = row_of(device, job);
  return row == nullptr ? "" : row->who.of.gang;
}

// A gang counts once.
inline std::string unit_of(const JobRow& job) {
  return job.who.of.gang.empty() ? fmt::format("job {}", job.who.of.job.value)
                                 : fmt::format("gang {} of {}", job.who.of.gang, job.who.uid);
}

inline std::string unit_of(const DeviceRow& device, JobId job) {
  const JobRow* const row = row_of(device, job);
  return row == nullptr ? fmt::format("job {}", job.value) : unit_of(*row);
}

// The jobs that a change of this one concerns: of a gang, all that take turns.
inline std::set<JobId> together_with(const DeviceRow& device, JobId job) {
  std::set<JobId> jobs{job};
  const auto takes_turns = [](const JobRow& row) {
    return row.is_registered && row.state != "lost";
  };
  const JobRow* const self = row_of(device, job);
  if (self == nullptr || !takes_turns(*self)) return jobs;
  for (const JobRow& row : device.jobs) {
    if (takes_turns(row) && unit_of(row) == unit_of(*self)) jobs.insert(row.who.of.job);
  }
  return jobs;
}

}  // namespace gpushare::sched::testing
