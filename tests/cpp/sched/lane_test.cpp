#include "csrc/sched/table/lane.h"

#include <gtest/gtest.h>

#include "csrc/sched/policies/policy.h"

namespace gpushare::sched {
namespace {

constexpr JobId kHolds{1};
constexpr JobId kHoldsToo{2};

class LaneChanges : public ::testing::Test {
 protected:
  LaneChanges() {
    for (const JobId id : {kHolds, kHoldsToo})
      lane_.waiting.insert({.id = id});
  }
  void begin(JobId job, Nanos now) {
    lane_.waiting.erase(job);
    lane_.begin_lease(Lease(job, now), now);
    lane_.check_invariants();
  }

  Lane lane_{Nanos{0}};
};

TEST_F(LaneChanges, ALeaseEndsTheChoiceAndAllThatWasSaidOfIt) {
  lane_.choose(kHoldsToo);
  lane_.note_stuck(seconds(1));
  lane_.wait_reason = "2 is next, 5.0 MiB short: asked others to give room";
  lane_.hold = Hold{kHoldsToo, seconds(9)};
  begin(kHolds, seconds(2));
  EXPECT_EQ(lane_.next(), JobId{0});
  EXPECT_FALSE(lane_.short_since().has_value());
  EXPECT_FALSE(lane_.is_stuck());
  EXPECT_EQ(lane_.wait_reason, "");
  EXPECT_FALSE(lane_.hold.has_value());
}

TEST_F(LaneChanges, AHolderLendsTheLaneToNobody) {
  lane_.lenders = {kHolds, kHoldsToo};
  begin(kHolds, seconds(1));
  EXPECT_EQ(lane_.lenders, std::set<JobId>{kHoldsToo});
}

TEST_F(LaneChanges, AnEndKnowsTheLastHolderAndTheTime) {
  begin(kHolds, seconds(1));
  lane_.is_watched = true;
  EXPECT_FALSE(lane_.closed_at.has_value());
  lane_.end_lease(seconds(3));
  EXPECT_FALSE(lane_.lease.has_value());
  EXPECT_FALSE(lane_.is_watched);
  EXPECT_EQ(lane_.last_holder, kHolds);
  EXPECT_EQ(lane_.closed_at, seconds(3));
}

TEST_F(LaneChanges, TheSameChoiceStaysShortSinceItWas) {
  lane_.choose(kHolds);
  lane_.note_short(seconds(1));
  lane_.wait_reason = "short";
  lane_.choose(kHolds);
  lane_.note_short(seconds(2));
  EXPECT_EQ(lane_.short_since(), seconds(1));
  EXPECT_EQ(lane_.wait_reason, "short");
  lane_.choose(kHoldsToo);
  EXPECT_FALSE(lane_.short_since().has_value());
  EXPECT_EQ(lane_.wait_reason, "");
}

TEST_F(LaneChanges, TimeInASuspensionIsNotBusy) {
  begin(kHolds, seconds(0));
  const double share = lane_.busy.share(seconds(10));
  lane_.suspend_lease(seconds(10));
  EXPECT_LT(lane_.busy.share(seconds(20)), share);
  lane_.resume_lease(seconds(20));
  lane_.resume_lease(seconds(25));
  EXPECT_EQ(lane_.lease->since(), seconds(10)) << "moved once, by the suspension";
}

TEST(LeaseChanges, ASuspensionMovesItsTimes) {
  Lease lease(kHolds, seconds(1));
  lease.let_along(kHoldsToo, seconds(4));
  lease.ask(seconds(2), "paused by user 7", true);
  lease.suspend(seconds(3));
  lease.go_on(seconds(5));
  EXPECT_EQ(lease.since(), seconds(3));
  EXPECT_EQ(lease.granted_at(), seconds(3));
  EXPECT_EQ(lease.asked_at(), seconds(4));
  EXPECT_EQ(lease.charged_until, seconds(5));
  EXPECT_EQ(lease.since_of(kHoldsToo), seconds(5)) << "it joined in the suspension";
}

TEST(LeaseChanges, TheNextOfAGangHoldsItForAll) {
  Lease lease(kHolds, seconds(1));
  lease.let_along(kHoldsToo, seconds(2));
  lease.let_along(JobId{3}, seconds(3));
  lease.owed = mib(1);
  lease.leave(JobId{3});
  EXPECT_EQ(lease.job(), kHolds);
  EXPECT_EQ(lease.owed, mib(1));
  lease.leave(kHolds);
  EXPECT_EQ(lease.job(), kHoldsToo);
  EXPECT_EQ(lease.since(), seconds(2));
  EXPECT_EQ(lease.owed, Bytes{0}) << "it was the other's";
  EXPECT_TRUE(lease.along().empty());
}

TEST(LeaseChanges, WhoTakesALeaseUpAgainIsNotAskedForIt) {
  Lease lease(kHolds, seconds(1));
  lease.let_along(kHoldsToo, seconds(2));
  lease.let_in.insert(kHoldsToo);
  lease.ask(seconds(3), "its quantum is over", true);
  const Lease back = lease.taken_up(seconds(4));
  EXPECT_FALSE(back.is_asked());
  EXPECT_EQ(back.granted_at(), seconds(1));
  EXPECT_EQ(back.charged_until, seconds(4));
  EXPECT_TRUE(back.is_held_by(kHoldsToo));
  EXPECT_TRUE(back.let_in.contains(kHoldsToo));
}

}  // namespace
}  // namespace gpushare::sched
