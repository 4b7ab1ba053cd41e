// Chooses a device by comparing costs. A cost is a tuple, so its members decide in their order: the
// device is too small for the job alone, the time until all work there is done, jobs there, and
// bytes left. The first device with the least cost is taken, so the same jobs always go to the same
// devices.
//
// Memory that has to move weighs as the time that moving takes. A coordinator stretches its turns
// until moving costs a small part of them, but no job may wait longer than the ceiling on waiting.
// So moving costs that part of the time, or more where many jobs move much. A device where little
// has to move thus wins over one where much has to move and as many jobs wait, and loses to one
// with a job less.
//
// Work that is unknown is taken to be as much as the whole work of a known job is on average: most
// such jobs have just begun. Without any known work the jobs are counted.
#include "csrc/host/device_placement.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::host {
namespace {

// Estimates, and the defaults of CoordinatorOptions: how fast memory moves, the part of the time
// that moving may cost, and the ceiling on waiting.
constexpr double kBytesPerSecond = 4.0 * 1024 * 1024 * 1024;
constexpr double kMovingPart = 0.02;
constexpr double kLongestWaitSeconds = 10;

// In this order: whether the job does not fit the device alone; seconds until all is done; the
// number of jobs there; the excess, which is negative if bytes are left.
using Cost = std::tuple<bool, double, std::size_t, Bytes>;

Cost cost_of(const DeviceLoad& device, const JobLoad& job, Nanos typical) {
  return {!device.fits_alone(job.sizes), device.seconds_with(job, typical), device.num_jobs(),
          device.excess_with(job.sizes)};
}

Nanos typical_work(const std::vector<DeviceLoad>& devices) {
  Nanos sum;
  std::size_t num_known = 0;
  for (const DeviceLoad& device : devices) {
    sum += device.whole_work();
    num_known += device.num_known();
  }
  return num_known == 0 ? seconds(1) : sum / static_cast<std::int64_t>(num_known);
}

}  // namespace

// Persistent memory adds up. Of ephemeral memory only the largest counts, since one job runs at a
// time.
void DeviceLoad::add(const JobLoad& job) {
  persistent_ += job.sizes.persistent;
  ephemeral_.insert(job.sizes.ephemeral);
  largest_ = *ephemeral_.rbegin();
  if (!job.work.has_value()) return;
  left_ += job.work->left;
  whole_ += job.work->whole;
  ++num_known_;
}

void DeviceLoad::remove(const JobLoad& job) {
  const auto found = ephemeral_.find(job.sizes.ephemeral);
  GS_CHECK(found != ephemeral_.end(), "no job has {}", to_string(job.sizes.ephemeral));
  ephemeral_.erase(found);
  largest_ = ephemeral_.empty() ? Bytes{0} : *ephemeral_.rbegin();
  persistent_ -= job.sizes.persistent;
  if (!job.work.has_value()) return;
  left_ -= job.work->left;
  whole_ -= job.work->whole;
  --num_known_;
}

// Only the context of the job's own process counts. A job that fails this test has no room there
// even if all other jobs are gone.
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

// The excess moves out and back in each round of turns. A round is as long as moving is the small
// part of it, or the ceiling on waiting.
double DeviceLoad::seconds_with(const JobLoad& job, Nanos typical) const {
  const auto num_unknown =
      static_cast<std::int64_t>(num_jobs() - num_known_) + (job.work.has_value() ? 0 : 1);
  const Nanos own = job.work.has_value() ? job.work->left : Nanos{0};
  const double work = to_seconds(left_ + own + typical * num_unknown) / speed_;
  const Bytes excess = excess_with(job.sizes);
  if (excess <= Bytes{0}) return work;
  const double moving = 2 * static_cast<double>(excess.value()) / kBytesPerSecond;
  return work * (1 + std::max(kMovingPart, moving / kLongestWaitSeconds));
}

std::size_t choose_device(const std::vector<DeviceLoad>& devices, const JobLoad& job) {
  return choose_devices(devices, job, 1).front();
}

// Groups begin at the multiples of the power of two that holds the gang. The last one may be short
// of devices: it begins earlier then.
std::vector<std::size_t> choose_devices(const std::vector<DeviceLoad>& devices,
                                        const JobLoad& job,
                                        std::size_t num) {
  GS_CHECK(num > 0 && num <= devices.size(), "{} of {} devices", num, devices.size());
  const Nanos typical = typical_work(devices);
  const std::size_t width = std::bit_ceil(num);
  std::optional<Cost> least;
  std::size_t best = 0;
  for (std::size_t group = 0; group < devices.size(); group += width) {
    const std::size_t begin = std::min(group, devices.size() - num);
    Cost worst = cost_of(devices[begin], job, typical);
    for (std::size_t i = begin + 1; i < begin + num; ++i)
      worst = std::max(worst, cost_of(devices[i], job, typical));
    if (least.has_value() && !(worst < *least)) continue;
    least = worst;
    best = begin;
  }
  std::vector<std::size_t> chosen(num);
  std::iota(chosen.begin(), chosen.end(), best);
  return chosen;
}

}  // namespace gpushare::host
