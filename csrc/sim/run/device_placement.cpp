// Chooses a device by comparing costs. A cost is a tuple, so its members decide in their order: the
// device is too small for the job alone, bytes to move in turns, jobs there, and bytes left. The
// first device with the least cost is taken, so the same jobs always go to the same devices.
#include "csrc/sim/run/device_placement.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::sim {
namespace {

// In this order: whether the job does not fit the device alone; bytes to move in turns; the number
// of jobs there; the excess, which is negative if bytes are left.
using Cost = std::tuple<bool, Bytes, std::size_t, Bytes>;

Cost cost_of(const DeviceLoad& device, const sched::Sizes& job) {
  const Bytes excess = device.excess_with(job);
  return {!device.fits_alone(job), std::max(excess, Bytes{0}), device.num_jobs(), excess};
}

}  // namespace

// Persistent memory adds up. Of ephemeral memory only the largest counts, since one job runs at a
// time.
void DeviceLoad::add(const sched::Sizes& job) {
  persistent_ += job.persistent;
  ephemeral_.insert(job.ephemeral);
  largest_ = *ephemeral_.rbegin();
}

void DeviceLoad::remove(const sched::Sizes& job) {
  const auto found = ephemeral_.find(job.ephemeral);
  GS_CHECK(found != ephemeral_.end(), "no job has {}", to_string(job.ephemeral));
  ephemeral_.erase(found);
  largest_ = ephemeral_.empty() ? Bytes{0} : *ephemeral_.rbegin();
  persistent_ -= job.persistent;
}

bool DeviceLoad::fits_alone(const sched::Sizes& job) const {
  return job.persistent + job.ephemeral + context_ <= capacity_;
}

// What the jobs together, with this one, need beyond the device: so much has to move when they take
// turns. Below 0 there is room for all.
Bytes DeviceLoad::excess_with(const sched::Sizes& job) const {
  const auto num_contexts = static_cast<std::int64_t>(num_jobs() + 1);
  return persistent_ + job.persistent + std::max(largest_, job.ephemeral) +
         context_ * num_contexts - capacity_;
}

std::size_t choose_device(const std::vector<DeviceLoad>& devices, const sched::Sizes& job) {
  std::size_t best = 0;
  Cost least = cost_of(devices.front(), job);
  for (std::size_t i = 1; i < devices.size(); ++i) {
    const Cost cost = cost_of(devices[i], job);
    if (!(cost < least)) continue;
    least = cost;
    best = i;
  }
  return best;
}

}  // namespace gpushare::sim
