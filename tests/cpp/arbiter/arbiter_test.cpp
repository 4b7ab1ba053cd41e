// The arbiter's decisions, case by case: hosts and ranks that come, are lost and come back.
// arbiter_bounds_test.cpp has what peers may not say, and arbiter_property_test.cpp runs programs
// at random.
#include "csrc/arbiter/arbiter.h"

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/arbiter/host_side.h"

#include "tests/cpp/support/arbiter_hosts.h"

namespace gpushare::arbiter {
namespace {

TEST_F(ArbiterTest, RowsOfTwoHostsFollowEachOther) {
  Coordinator& a = add_host("a");
  Coordinator& b = add_host("b");
  add_rank(a, kRed, 1, 0);
  add_rank(b, kRed, 1, 1);
  add_rank(a, kBlue, 2, 0);
  add_rank(b, kBlue, 2, 1);
  settle();
  ASSERT_TRUE(order(a, 1).is_open);
  ASSERT_TRUE(order(b, 1).is_open);
  EXPECT_FALSE(order(a, 2).is_open);
  EXPECT_FALSE(order(b, 2).is_open);
  EXPECT_EQ(order(a, 2).why, "waits with its gang blue for the row of gang red on a/cpu");
  const std::uint64_t end = order(a, 1).stop_at;
  EXPECT_EQ(order(b, 1).stop_at, end);
  run(a, 1);
  run(b, 1);
  settle();
  stop(a, 1, end);
  settle();
  EXPECT_FALSE(order(a, 2).is_open) << "a rank of the row before has a lease still";
  stop(b, 1, end);
  settle();
  EXPECT_TRUE(order(a, 2).is_open);
  EXPECT_TRUE(order(b, 2).is_open);
  EXPECT_FALSE(order(a, 1).is_open);
}

TEST_F(ArbiterTest, AGangOnOneDeviceNeedsNoRow) {
  Coordinator& a = add_host("a");
  add_rank(a, kRed, 1, 0);
  add_rank(a, kRed, 2, 1);
  settle();
  EXPECT_TRUE(order(a, 1).is_free);
  EXPECT_TRUE(order(a, 2).is_free);
}

// Orders rest on what all hosts say now, not on what one of them said before.
TEST_F(ArbiterTest, DecidesWhenAllHostsHaveAnswered) {
  Coordinator& a = add_host("a");
  Coordinator& b = add_host("b");
  settle();
  answers_ = false;
  add_rank(a, kRed, 1, 0);
  add_rank(b, kRed, 1, 1);
  settle();
  EXPECT_TRUE(a.orders.empty());
  answers_ = true;
  for (Coordinator* host : {&a, &b})
    answer_all(*host);
  settle();
  EXPECT_TRUE(order(a, 1).is_open);
}

TEST_F(ArbiterTest, AHostIsAskedOnceASecondAndHasThreeToAnswer) {
  add_host("a");
  settle();
  EXPECT_TRUE(arbiter_.step(now_).messages.empty());
  now_ += seconds(1);
  const Ready asks = arbiter_.step(now_);
  ASSERT_EQ(asks.messages.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<Look>(asks.messages.front().second));
  EXPECT_EQ(asks.look_at, now_ + seconds(3));
  now_ += millis(2999);
  EXPECT_TRUE(arbiter_.step(now_).close.empty());
  now_ += millis(1);
  EXPECT_EQ(arbiter_.step(now_).close.size(), 1U);
}

TEST_F(ArbiterTest, AHostThatDoesNotAnswerIsLeftAndTheOthersGoOn) {
  auto [a, b] = run_red();
  Coordinator& c = add_host("c");
  settle();
  answers_ = false;
  add_rank(b, kBlue, 2, 0);
  add_rank(c, kBlue, 2, 1);
  stop(b, 1, order(b, 1).stop_at);
  settle();
  EXPECT_FALSE(c.orders.contains(JobId{2})) << "host a has not said how its rank stands";
  now_ += seconds(3);
  answers_ = true;
  a.is_here = false;
  for (Coordinator* host : {&b, &c})
    answer_all(*host);
  settle();
  EXPECT_EQ(closed_, std::vector<std::string>{"it does not answer"});
  // Red's row ends without its lost rank, which ends its lease by itself.
  EXPECT_TRUE(order(b, 2).is_open);
  EXPECT_TRUE(order(c, 2).is_open);
  EXPECT_EQ(order(b, 1).why, "waits with its gang red for a rank to come back");
}

TEST_F(ArbiterTest, NoRowOpensForAGangWithALostRankUntilItIsForgotten) {
  auto [a, b] = run_red();
  const std::uint64_t end = order(a, 1).stop_at;
  cut(b);
  stop(a, 1, end);
  settle();
  EXPECT_FALSE(order(a, 1).is_open);
  EXPECT_FALSE(order(a, 1).is_free);
  now_ += seconds(31);
  settle();
  EXPECT_TRUE(order(a, 1).is_free) << "the rest is on one device";
  EXPECT_EQ(arbiter_.num_ranks(), 1U);
  EXPECT_EQ(arbiter_.num_hosts(), 1U);
}

// The rank has ended, and its host's next coordinator, which never heard of it, cannot say so.
TEST_F(ArbiterTest, AHostThatIsLostAgainGivesItsLostRankNoMoreTime) {
  auto [a, b] = run_red();
  cut(b);
  stop(a, 1, order(a, 1).stop_at);
  b.instance = 2;
  b.side = HostSide();
  b.ranks.clear();
  for (int i = 0; i < 2; ++i) {
    connect(b);
    settle();
    now_ += seconds(16);
    cut(b);
    settle();
  }
  EXPECT_EQ(arbiter_.num_ranks(), 1U);
  EXPECT_TRUE(order(a, 1).is_free);
}

TEST_F(ArbiterTest, AConnectionThatIsLostChangesNothingForARowThatGoesOn) {
  auto [a, b] = run_red();
  cut(b);
  settle();
  b.orders.clear();
  connect(b);
  settle();
  EXPECT_TRUE(order(b, 1).is_open) << "it is told again what it was told before";
  EXPECT_EQ(order(b, 1).stop_at, order(a, 1).stop_at);
  EXPECT_EQ(arbiter_.num_ranks(), 2U);
}

TEST_F(ArbiterTest, ARankThatEndedWhileItsHostWasAwayIsForgotten) {
  auto [a, b] = open_red();
  cut(b);
  b.side.forget(JobId{1});
  b.ranks.clear();
  settle();
  connect(b);
  settle();
  EXPECT_EQ(arbiter_.num_ranks(), 1U);
}

// The new coordinator of a host numbers its jobs anew. The process is the same rank.
TEST_F(ArbiterTest, ARankIsTheSameAtItsHostsNextCoordinator) {
  auto [a, b] = run_red();
  add_rank(b, kBlue, 2, 0);
  settle();
  const std::uint64_t end = order(b, 1).stop_at;
  cut(b);
  settle();
  b.instance = 2;
  b.side = HostSide();
  b.ranks.clear();
  b.orders.clear();
  connect(b);
  settle();
  // Blue's rank comes first, and gets the number that red's had.
  add_rank(b, kBlue, 1, 0);
  settle();
  EXPECT_FALSE(order(b, 1).is_open);
  numbers_[{"b", JobId{2}}] = 1;
  see(b, {.gang = kRed,
          .job = JobId{2},
          .ranks = 2,
          .steps = 2,
          .stop_at = end,
          .has_lease = true,
          .iteration = millis(10)});
  settle();
  EXPECT_TRUE(order(b, 2).is_open);
  EXPECT_EQ(order(b, 2).stop_at, order(a, 1).stop_at);
  EXPECT_EQ(arbiter_.num_ranks(), 3U);
}

// What the ranks were told by the arbiter before was agreed on.
TEST_F(ArbiterTest, ANewArbiterAdoptsRowsUnderAHigherEpoch) {
  auto [a, b] = run_red();
  const std::uint64_t end = order(a, 1).stop_at;
  for (Coordinator* host : {&a, &b})
    change(*host, 1, [end](host::RankReport& r) { r.stop_at = end; });
  change(a, 1, [end](host::RankReport& r) { r.stop_at = end + 5; });
  settle();
  start_arbiter(7);  // a clock that went back
  connect(a);
  connect(b);
  EXPECT_GT(arbiter_.epoch(), 100U);
  settle();
  EXPECT_GE(order(a, 1).stop_at, end + 5) << "the largest that any of them knows";
  EXPECT_EQ(order(b, 1).stop_at, order(a, 1).stop_at);
  const Order stale{.epoch = 100, .order = {.job = JobId{1}, .is_open = true, .stop_at = 1000}};
  EXPECT_FALSE(a.side.take(stale).has_value());
}

TEST_F(ArbiterTest, TheNewestConnectionOfAHostCounts) {
  Coordinator& a = add_host("a");
  settle();
  const PeerId before = a.peer;
  connect(a);
  settle();
  EXPECT_EQ(closed_, std::vector<std::string>{"its host has connected anew"});
  EXPECT_EQ(arbiter_.hear(before, Gone{JobId{1}}, now_).code(), StatusCode::kUnavailable)
      << "what was on its way from there";
  EXPECT_EQ(arbiter_.num_hosts(), 1U);
}

// The numbers of its devices mean other devices then.
TEST_F(ArbiterTest, AHostWhoseDevicesHaveChangedCountsAsANewOne) {
  auto [a, b] = run_red();
  cut(b);
  b.devices = "cpu:0,cpu:1";
  b.ranks.at(JobId{1}).has_lease = false;
  b.ranks.at(JobId{1}).wants = true;
  b.ranks.at(JobId{1}).device = 1;
  b.side.report(b.ranks.at(JobId{1}), 1);
  connect(b);
  settle();
  EXPECT_EQ(arbiter_.num_ranks(), 2U);
  stop(a, 1, order(a, 1).stop_at);
  settle();
  EXPECT_TRUE(order(b, 1).is_open);
  add_rank(a, kBlue, 2, 0);
  add_rank(b, kBlue, 2, 1);
  change(b, 2, [](host::RankReport& r) { r.device = 1; });
  settle();
  EXPECT_EQ(order(b, 2).why, "waits with its gang blue for the row of gang red on a/cpu");
  cut(b);
  b.devices = "cpu:1";
  for (auto& [job, report] : b.ranks) {
    report.device = 0;
    b.side.report(report, 1);
  }
  connect(b);
  settle();
  EXPECT_EQ(arbiter_.num_ranks(), 4U);
  EXPECT_EQ(arbiter_.num_hosts(), 2U);
  cut(b);
  b = {.peer = b.peer, .name = b.name, .instance = 2, .devices = "cpu:0"};
  connect(b);
  settle();
  EXPECT_EQ(arbiter_.num_ranks(), 2U) << "ranks on devices that are gone are forgotten at once";
}

}  // namespace
}  // namespace gpushare::arbiter
