// Virtual time: what happens when, in order; at one time, in the order it was said.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "csrc/base/units.h"

namespace gpushare::sim {

class EventQueue {
 public:
  [[nodiscard]] Nanos now() const { return now_; }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  // When the first event happens. pre: !empty().
  [[nodiscard]] Nanos next_at() const { return events_.begin()->first.first; }

  // pre: delay >= 0.
  void after(Nanos delay, std::function<void()> event) {
    events_.emplace(std::pair{now_ + delay, ++num_events_}, std::move(event));
  }

  // pre: !empty().
  void run_next() {
    auto node = events_.extract(events_.begin());
    now_ = node.key().first;
    node.mapped()();
  }

 private:
  Nanos now_;
  std::uint64_t num_events_ = 0;
  std::map<std::pair<Nanos, std::uint64_t>, std::function<void()>> events_;
};

}  // namespace gpushare::sim
