#include "csrc/sim/run/event_queue.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

namespace gpushare::sim {
namespace {

TEST(EventQueue, SettingAnEventAgainMovesIt) {
  EventQueue events(2, 1);
  events.set(EventKind::kWake, 0, seconds(5));
  events.set(EventKind::kWake, 1, seconds(3));
  events.set(EventKind::kWake, 0, seconds(2));
  events.set(EventKind::kWake, 1, seconds(4));
  EXPECT_EQ(events.pop().of, 0U);
  EXPECT_EQ(events.now(), seconds(2));
  EXPECT_EQ(events.pop().of, 1U);
  EXPECT_EQ(events.now(), seconds(4));
  EXPECT_TRUE(events.empty());
}

TEST(EventQueue, AtOneTimeJobsComeBeforeCoordinators) {
  EventQueue events(2, 2);
  events.set(EventKind::kDeadline, 0, seconds(1));
  events.set(EventKind::kWake, 1, seconds(1));
  events.set(EventKind::kWake, 0, seconds(1));
  EXPECT_EQ(events.pop(), (Event{EventKind::kWake, 0}));
  EXPECT_EQ(events.pop(), (Event{EventKind::kWake, 1}));
  EXPECT_EQ(events.pop(), (Event{EventKind::kDeadline, 0}));
}

// Against a map of the sources, searched as a whole.
TEST(EventQueueProperty, HappensInOrder) {
  EXPECT_TRUE(rc::check("events happen in the order of their times", [] {
    constexpr int kNum = 12;
    EventQueue events(kNum, kNum);
    using Source = std::pair<EventKind, int>;
    std::map<Source, Nanos> plain;
    const int num_steps = *rc::gen::inRange(1, 200);
    for (int step = 0; step < num_steps; ++step) {
      if (*rc::gen::inRange(0, 3) > 0) {
        const auto kind = *rc::gen::element(EventKind::kWake, EventKind::kReleased,
                                            EventKind::kDeadline, EventKind::kLook);
        const int of = *rc::gen::inRange(0, kNum);
        const Nanos at = events.now() + Nanos{*rc::gen::inRange(0, 20)};
        events.set(kind, static_cast<std::size_t>(of), at);
        plain[{kind, of}] = at;
      } else if (!plain.empty()) {
        const auto first =
            std::min_element(plain.begin(), plain.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
        RC_ASSERT(events.next_at() == first->second);
        const Event event = events.pop();
        RC_ASSERT(event.kind == first->first.first);
        RC_ASSERT(event.of == static_cast<std::size_t>(first->first.second));
        plain.erase(first);
      }
      RC_ASSERT(events.empty() == plain.empty());
    }
  }));
}

}  // namespace
}  // namespace gpushare::sim
