// Virtual time: what happens when, in order; at one time jobs come before coordinators, and of each
// the lower index first. So the order does not depend on when a plan was made.
//
// Each source (a kind of event of one job or device) has one event at most: setting it again moves
// it. So the queue holds no more than there are sources, however often plans change.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::sim {

enum class EventKind : std::uint8_t {
  kWake,      // a job has something to do; if it is on no device, it arrives
  kReleased,  // a job has given the memory that it was asked for
  kDeadline,  // of a device's coordinator
  kLook,      // at the pages of a device's holders
  kRows,      // the rows of all gangs: there is one source
  kRound,     // devices are given anew: one source, too
};

struct Event {
  EventKind kind = EventKind::kWake;
  std::size_t of = 0;  // the job's or the device's index
  auto operator<=>(const Event&) const = default;
};

class EventQueue {
 public:
  EventQueue(std::size_t num_jobs, std::size_t num_devices);

  [[nodiscard]] Nanos now() const { return now_; }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  // When the first event happens. pre: !empty().
  [[nodiscard]] Nanos next_at() const { return heap_.front().at; }

  // pre: at >= now().
  void set(EventKind kind, std::size_t of, Nanos at);
  // pre: nothing happens before `at`.
  void advance(Nanos at) { now_ = at; }
  // Goes on to the first event. pre: !empty().
  Event pop();

 private:
  static constexpr std::size_t kNumKinds = 6;

  struct Entry {
    Nanos at;
    Event event;
    auto operator<=>(const Entry&) const = default;
  };

  [[nodiscard]] std::size_t& place_of(const Event& event) {
    return places_[static_cast<std::size_t>(event.kind)][event.of];
  }
  void put(std::size_t place, const Entry& entry);
  void rise(std::size_t place, const Entry& entry);
  void sink(std::size_t place, const Entry& entry);

  Nanos now_;
  std::vector<Entry> heap_;  // each is before its kArity children
  // The place of each source's entry in the heap. Invariant: the entry's place, or kNoPlace if
  // there is none.
  std::array<std::vector<std::size_t>, kNumKinds> places_;
};

}  // namespace gpushare::sim
