#include "csrc/sched/table/table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::sched {
namespace {

template <typename Devices>
auto* find_by_name(Devices& devices, const std::string& name) {
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const Device& device) { return device.name == name; });
  return found == devices.end() ? nullptr : &*found;
}

template <typename Lanes>
auto* find_holder(Lanes& lanes, JobId job) {
  const auto found = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& lane) {
    return lane.lease.has_value() && lane.lease->is_held_by(job);
  });
  return found == lanes.end() ? nullptr : &*found;
}

}  // namespace

bool Device::has_need(JobId job) const {
  return std::ranges::binary_search(needs, job, {}, &WaitingNeed::job);
}

void Device::add_need(WaitingNeed need) {
  const auto at = std::ranges::upper_bound(needs, need.job, {}, &WaitingNeed::job);
  needs.insert(at, std::move(need));
}

bool Device::is_anybody_short() const {
  return !needs.empty() || is_gang_short ||
         std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) {
           if (!lane.lease.has_value()) return !lane.waiting.empty();
           return lane.lease->owed > Bytes{0} && !is_lane_suspended(lane);
         });
}

const Lane* Device::lane_held_by(JobId job) const { return find_holder(lanes, job); }
Lane* Device::lane_held_by(JobId job) { return find_holder(lanes, job); }

const Job* Table::find(JobId job) const { return jobs.find(job); }
Job* Table::find(JobId job) { return jobs.find(job); }

const Job& Table::at(JobId job) const {
  const Job* found = find(job);
  GS_CHECK(found != nullptr, "no job {}", job.value);
  return *found;
}

Job& Table::at(JobId job) {
  Job* found = find(job);
  GS_CHECK(found != nullptr, "no job {}", job.value);
  return *found;
}

const Device* Table::find_device(const std::string& name) const {
  return find_by_name(devices, name);
}

Device* Table::find_device(const std::string& name) { return find_by_name(devices, name); }

const Device& Table::device_of(const Job& job) const {
  const Device* device = find_device(job.of.device);
  GS_CHECK(device != nullptr, "job {} is on '{}'", job.id.value, job.of.device);
  return *device;
}

Device& Table::device_of(const Job& job) {
  Device* device = find_device(job.of.device);
  GS_CHECK(device != nullptr, "job {} is on '{}'", job.id.value, job.of.device);
  return *device;
}

std::size_t Table::num_open_lanes(const Device& device) const {
  return device.packs() ? std::max(options.num_lanes, options.pack_lanes) : options.num_lanes;
}

bool Table::is_recovering(Nanos now) const { return !expected.empty() && now < recovery_ends; }

Nanos Table::answer_due(const Job& job) const {
  // A spill takes its time, however short the turns are.
  constexpr Nanos kLeastPatience = seconds(2);
  return job.revoke->sent_at + std::max(options.max_wait, kLeastPatience);
}

bool Table::is_overdue(const Job& job, Nanos now) const {
  return job.revoke.has_value() && (job.is_suspended() || now >= answer_due(job));
}

QuantumLimits Table::quantum_limits() const {
  return {options.min_quantum, options.max_wait, options.switch_loss};
}

JobSet holders_of_lane(const Lane& lane) {
  JobSet holders{lane.lease->job};
  for (const Lease::Along& each : lane.lease->along)
    holders.push_back(each.job);
  return holders;
}

}  // namespace gpushare::sched
