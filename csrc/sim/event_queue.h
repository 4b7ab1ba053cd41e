// Virtual time: what happens when, in order; at one time, in the order it was said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::sim {

enum class EventKind : std::uint8_t {
  kArrival,   // of a job
  kWake,      // a job has something to do
  kReleased,  // a job has given the memory that it was asked for
  kDeadline,  // of a device's coordinator
  kLook,      // at the pages of a device's holders
};

struct Event {
  Nanos at;
  std::uint64_t number = 0;  // in the order they were said
  EventKind kind = EventKind::kArrival;
  std::size_t of = 0;       // the job's or the device's index
  std::uint64_t stamp = 0;  // old ones are nobody's any more
};

class EventQueue {
 public:
  [[nodiscard]] Nanos now() const { return now_; }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  // When the first event happens. pre: !empty().
  [[nodiscard]] Nanos next_at() const { return events_.top().at; }

  // pre: at >= now().
  void push(Nanos at, EventKind kind, std::size_t of, std::uint64_t stamp = 0) {
    events_.push({at, ++num_events_, kind, of, stamp});
  }

  // pre: nothing happens before `at`.
  void advance(Nanos at) { now_ = at; }
  // Goes on to the first event. pre: !empty().
  Event pop() {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    return event;
  }

 private:
  struct IsLater {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };

  Nanos now_;
  std::uint64_t num_events_ = 0;
  std::priority_queue<Event, std::vector<Event>, IsLater> events_;
};

}  // namespace gpushare::sim
