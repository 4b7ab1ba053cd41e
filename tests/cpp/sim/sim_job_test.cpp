#include "csrc/sim/run/sim_job.h"

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/wire/job_messages.h"

#include "tests/cpp/sim/plain_machine.h"

namespace gpushare::sim {
namespace {

// A job of 10 iterations of 100 ms with gaps of 50 ms, that keeps 1 GiB and needs 2: with its
// lease, in its first iteration since 0 s.
class SimJobTest : public ::testing::Test {
 protected:
  SimJobTest() {
    spec_.name = "job";
    spec_.iteration = millis(100);
    spec_.gap = millis(50);
    spec_.iterations = 10;
    spec_.live = gib(1);
    spec_.peak = gib(2);
    job_.arrive(machine_);
    job_.on_message(wire::Welcome{});
    job_.on_message(wire::Grant{.of = {}, .n = 1, .need_n = 1, .room = gib(2)});
    job_.on_message(wire::Registered{});
    job_.on_grant(Term{1});
    job_.on_wake();
  }

  void go_on() {
    machine_.at = machine_.wakes_at.value();
    job_.on_wake();
  }

  PlainMachine machine_;
  JobSpec spec_;
  SimJob job_{JobId{1}, spec_, false};
};

TEST_F(SimJobTest, WakesOnlyAtItsEnd) {
  EXPECT_EQ(machine_.wakes_at, millis(1450));
  go_on();
  EXPECT_EQ(job_.outcome(), SimJob::Outcome::kFinished);
  EXPECT_NE(machine_.last<wire::Gone>(), nullptr);
  EXPECT_EQ(machine_.num_open, 0);
}

TEST_F(SimJobTest, ClosesAtTheBoundaryAfterItWasAsked) {
  machine_.at = millis(210);
  job_.on_ask(Term{1});
  EXPECT_EQ(machine_.last<wire::Closed>(), nullptr);
  EXPECT_EQ(machine_.wakes_at, millis(250));
  go_on();
  ASSERT_NE(machine_.last<wire::Closed>(), nullptr);
  EXPECT_EQ(machine_.last<wire::Closed>()->usage.iterations, 2U);
  EXPECT_EQ(machine_.wakes_at, millis(300)) << "its gap goes on";
  go_on();
  EXPECT_NE(machine_.last<wire::Wanted>(), nullptr);
}

TEST_F(SimJobTest, ClosesAtOnceInItsGap) {
  machine_.at = millis(120);
  job_.on_ask(Term{1});
  EXPECT_NE(machine_.last<wire::Closed>(), nullptr);
}

TEST_F(SimJobTest, IgnoresAnOldQuestion) {
  machine_.at = millis(120);
  job_.on_ask(Term{0});
  EXPECT_EQ(machine_.last<wire::Closed>(), nullptr);
}

// It gave free memory in its gap and kept its lease: the next iteration waits for room.
TEST_F(SimJobTest, NeedsBackWhatItGaveInItsGap) {
  machine_.at = millis(120);
  job_.on_message(wire::Revoke{.of = {}, .n = 2, .bytes = mib(1536)});
  ASSERT_NE(machine_.last<wire::Released>(), nullptr);
  EXPECT_EQ(machine_.last<wire::Released>()->bytes, gib(1)) << "live memory stays";
  EXPECT_EQ(machine_.wakes_at, millis(150));
  go_on();
  ASSERT_NE(machine_.last<wire::Need>(), nullptr);
  EXPECT_EQ(machine_.last<wire::Need>()->bytes, gib(1));
  machine_.at = millis(200);
  job_.on_message(wire::Grant{.of = {}, .n = 3, .need_n = 2, .room = gib(2)});
  EXPECT_EQ(machine_.wakes_at, millis(200 + 8 * 150 + 100));
}

TEST_F(SimJobTest, GivesNothingInsideAnIteration) {
  machine_.at = millis(50);
  job_.on_message(wire::Revoke{.of = {}, .n = 2, .bytes = gib(1)});
  ASSERT_NE(machine_.last<wire::Released>(), nullptr);
  EXPECT_EQ(machine_.last<wire::Released>()->bytes, Bytes{0});
}

// Parked, it spills what it keeps, at the link's speed, and restores it with its next lease.
TEST_F(SimJobTest, SpillsWhileItWaits) {
  machine_.at = millis(120);
  job_.on_ask(Term{1});
  go_on();
  job_.on_message(wire::Revoke{.of = {}, .n = 2, .bytes = mib(1536), .most_ram = gib(4)});
  EXPECT_EQ(machine_.releases_at, millis(150 + 500));
  machine_.at = *machine_.releases_at;
  job_.on_released();
  ASSERT_NE(machine_.last<wire::Released>(), nullptr);
  EXPECT_EQ(machine_.last<wire::Released>()->dropped, gib(1));
  EXPECT_EQ(machine_.last<wire::Released>()->spilled, mib(512));
  job_.on_message(wire::Grant{.of = {}, .n = 3, .need_n = 0, .room = gib(2)});
  job_.on_grant(Term{2});
  EXPECT_EQ(machine_.wakes_at, millis(650 + 500)) << "restored";
  go_on();
  EXPECT_EQ(job_.moved(), gib(1));
  EXPECT_EQ(job_.spilled(), Bytes{0});
}

TEST_F(SimJobTest, HasNewsAtItsFirstBoundaryAndWhenItsSizesAreKnown) {
  EXPECT_EQ(job_.next_news(), std::nullopt) << "nobody watches";
  machine_.at = millis(5);
  EXPECT_EQ(job_.look().iterations, 0U);
  EXPECT_EQ(job_.next_news(), millis(105)) << "every 10 ms since 5 ms";
  machine_.at = millis(105);
  EXPECT_TRUE(job_.look().is_in_gap);
  // Whether its gap is lent may look different at its end.
  EXPECT_EQ(job_.next_news(), millis(155));
}

}  // namespace
}  // namespace gpushare::sim
