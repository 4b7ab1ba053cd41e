// One queue over all devices, first come, first served, one job a device at a time: what a cluster
// without sharing does. The baseline of comparisons (policy=exclusive).
//
// A job may need several devices. If the first in the queue needs more than are idle, the first one
// behind it that needs no more starts in its place. This is backfill without reservations: idle
// devices are never kept for a large job, so a stream of small jobs can make it wait for long.
//
// Pure bookkeeping. A job takes the fastest devices that are idle, and of those the first.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <utility>

#include "csrc/sim/dispatch/dispatcher.h"

namespace gpushare::sim {

class CentralQueue final : public Dispatcher {
 public:
  // All devices are idle. `speeds`: of each device.
  explicit CentralQueue(std::vector<double> speeds) : speeds_(std::move(speeds)) {
    for (std::size_t device = 0; device < speeds_.size(); ++device)
      note_idle(device);
  }

  // A job that has failed comes again, and then after all that wait.
  void push(std::size_t job, std::size_t num_devices) override {
    waiting_[num_devices].push_back({num_pushed_++, job});
  }
  void note_idle(std::size_t device) override { idle_.emplace(-speeds_[device], device); }

  std::optional<Start> start() override {
    auto first = waiting_.end();
    for (auto size = waiting_.begin(); size != waiting_.end() && size->first <= idle_.size();
         ++size) {
      const bool is_earlier =
          first == waiting_.end() || size->second.front().number < first->second.front().number;
      if (is_earlier) first = size;
    }
    if (first == waiting_.end()) return std::nullopt;
    Start next{first->second.front().job, {}};
    for (std::size_t num = first->first; num > 0; --num) {
      next.devices.push_back(idle_.begin()->second);
      idle_.erase(idle_.begin());
    }
    first->second.pop_front();
    if (first->second.empty()) waiting_.erase(first);
    return next;
  }

 private:
  struct Waiting {
    std::size_t number = 0;  // of the push
    std::size_t job = 0;
  };

  // By how many devices they need. Invariant: no list is empty.
  std::map<std::size_t, std::deque<Waiting>> waiting_;
  std::size_t num_pushed_ = 0;
  std::vector<double> speeds_;
  std::set<std::pair<double, std::size_t>> idle_;  // the fastest first
};

}  // namespace gpushare::sim
