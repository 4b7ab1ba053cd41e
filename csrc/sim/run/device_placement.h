// On which of several devices a job that arrives takes its turns: pure planning. In which lane of
// it is planned there (csrc/sched/plans/placement.h).
//
// A job that fits a device alone is never put on one that it does not fit while another is left. Of
// those it fits: least live memory to move in turns, then the fewest jobs to wait for, then most
// room left, then the first. What counts is what is known when it arrives: what the jobs that are
// there keep and need; how long they still run is not.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/admission.h"

namespace gpushare::sim {

// The jobs of one device.
class DeviceLoad {
 public:
  // `context`: what each process holds beside its tensors.
  explicit DeviceLoad(Bytes capacity, Bytes context = {})
      : capacity_(capacity), context_(context) {}

  void add(const sched::Sizes& job);
  // pre: it was added.
  void remove(const sched::Sizes& job);

  [[nodiscard]] std::size_t num_jobs() const { return ephemeral_.size(); }
  // With one more job.
  [[nodiscard]] bool fits_alone(const sched::Sizes& job) const;
  // By how much the persistent memory of all, and the largest ephemeral one, exceed the device:
  // what has to move in turns. Negative: so much is left.
  [[nodiscard]] Bytes excess_with(const sched::Sizes& job) const;

 private:
  Bytes capacity_;
  Bytes context_;
  Bytes persistent_;
  Bytes largest_;  // Invariant: of ephemeral_; apart, since each arrival asks each device for it
  std::multiset<Bytes> ephemeral_;
};

// The index of the device. Where the job fits none, that with least excess. pre: there is one.
std::size_t choose_device(const std::vector<DeviceLoad>& devices, const sched::Sizes& job);

}  // namespace gpushare::sim
