// One queue over all devices, first come, first served, one job a device at a time: what a cluster
// without sharing does. The baseline of comparisons (policy=exclusive).
//
// Pure bookkeeping. All devices are alike, so the first that is idle takes the next job.
#pragma once

#include <cstddef>
#include <deque>
#include <set>

namespace gpushare::sim {

class CentralQueue {
 public:
  struct Start {
    std::size_t job = 0;
    std::size_t device = 0;
  };

  // All devices are idle.
  explicit CentralQueue(std::size_t num_devices) {
    for (std::size_t device = 0; device < num_devices; ++device)
      idle_.insert(idle_.end(), device);
  }

  void push(std::size_t job) { waiting_.push_back(job); }
  // The device's job is gone.
  void note_idle(std::size_t device) { idle_.insert(device); }
  // Whether a job waits and a device is idle.
  [[nodiscard]] bool can_start() const { return !waiting_.empty() && !idle_.empty(); }
  // Takes both. pre: can_start().
  Start start() {
    const Start next{waiting_.front(), *idle_.begin()};
    waiting_.pop_front();
    idle_.erase(idle_.begin());
    return next;
  }

 private:
  std::deque<std::size_t> waiting_;
  std::set<std::size_t> idle_;
};

}  // namespace gpushare::sim
