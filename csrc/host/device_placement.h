// On which of a host's devices a job that arrives takes its turns: pure planning. In which lane of
// it is planned there (csrc/sched/plans/placement.h). The coordinator's process and the simulator
// use the same function.
//
// A job that fits a device alone is never put on one that it does not fit while another is left. Of
// those it fits, the job goes where all work would be done first; then where the fewest jobs are,
// then where the most room is left, then to the first. What counts is what is known when the job
// arrives: what the jobs that are there keep and need, and how much work they have left.
//
// A gang goes to devices side by side. Their numbers are a group that begins at a multiple of a
// power of two, as buddies do in an allocator. So of two gangs, either all devices of the smaller
// one are devices of the larger one, or none is. Gangs that overlapped in part would each keep
// devices of the other idle.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/admission.h"

namespace gpushare::host {

// Device time that a job takes.
struct JobWork {
  Nanos left;   // until it is done
  Nanos whole;  // from its first iteration to its last
};

// A job as far as it is known when devices are compared.
struct JobLoad {
  sched::Sizes sizes;                // 0: unknown
  std::optional<JobWork> work = {};  // nothing: unknown
};

// The jobs of one device.
class DeviceLoad {
 public:
  // `context`: what each process holds beside its tensors. `speed`: beside other devices.
  explicit DeviceLoad(Bytes capacity, Bytes context = {}, double speed = 1)
      : capacity_(capacity), context_(context), speed_(speed) {}

  void add(const JobLoad& job);
  // pre: it was added, with the same figures.
  void remove(const JobLoad& job);

  [[nodiscard]] std::size_t num_jobs() const { return ephemeral_.size(); }
  // The sum of the whole work of jobs whose work is known, and how many they are.
  [[nodiscard]] Nanos whole_work() const { return whole_; }
  [[nodiscard]] std::size_t num_known() const { return num_known_; }
  // With one more job.
  [[nodiscard]] bool fits_alone(const sched::Sizes& job) const;
  // By how much the persistent memory of all, and the largest ephemeral one, exceed the device:
  // what has to move in turns. Negative: so much is left.
  [[nodiscard]] Bytes excess_with(const sched::Sizes& job) const;
  // When all work would be done with this job too, if one of unknown work has `typical`.
  [[nodiscard]] double seconds_with(const JobLoad& job, Nanos typical) const;

 private:
  Bytes capacity_;
  Bytes context_;
  double speed_;
  Bytes persistent_;
  Bytes largest_;  // Invariant: of ephemeral_; apart, since each arrival asks each device for it
  // One entry for each job, 0 for a job of unknown size. So its size is the number of jobs.
  std::multiset<Bytes> ephemeral_;
  // Sums over the jobs whose work is known: what is left of it, and all of it.
  Nanos left_;
  Nanos whole_;
  std::size_t num_known_ = 0;  // Invariant: at most num_jobs().
};

// The index of the device. Where the job fits none, the same order decides. pre: there is one.
std::size_t choose_device(const std::vector<DeviceLoad>& devices, const JobLoad& job);

// The devices of a job's ranks, each of which has that load: the group whose worst device is best.
// pre: there are `num` devices at least, and num > 0.
std::vector<std::size_t> choose_devices(const std::vector<DeviceLoad>& devices,
                                        const JobLoad& job,
                                        std::size_t num);

}  // namespace gpushare::host
