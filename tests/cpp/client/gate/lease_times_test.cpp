#include "csrc/client/gate/lease_times.h"

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

TEST(LeaseTimes, AWaitEndsWithTheGrantAndMovingFollows) {
  LeaseTimes times;
  times.park(seconds(10));
  times.open(seconds(13), seconds(14), true);
  EXPECT_EQ(times.waited(), seconds(3));
  EXPECT_EQ(times.moving(), seconds(1));
  EXPECT_EQ(times.held(seconds(15)), seconds(2)) << "from the grant on";
}

TEST(LeaseTimes, AThreadThatDidNotParkHasNotWaited) {
  LeaseTimes times;
  times.open(seconds(13), seconds(14), false);
  EXPECT_EQ(times.waited(), Nanos{});
  EXPECT_EQ(times.moving(), seconds(1));
}

TEST(LeaseTimes, AStatedGrantIsBetweenTheParkingAndNow) {
  LeaseTimes times;
  times.park(seconds(10));
  EXPECT_EQ(times.granted_at(seconds(11), seconds(12)), seconds(11));
  EXPECT_EQ(times.granted_at(seconds(1), seconds(12)), seconds(10));
  EXPECT_EQ(times.granted_at(seconds(99), seconds(12)), seconds(12));
}

TEST(LeaseTimes, HoldingEndsWithTheClose) {
  LeaseTimes times;
  times.open(seconds(10), seconds(10), false);
  times.close(seconds(12));
  EXPECT_EQ(times.held(seconds(20)), seconds(2));
  EXPECT_EQ(times.since_close(seconds(20)), seconds(8));
  times.close(seconds(30));
  EXPECT_EQ(times.held(seconds(40)), seconds(2)) << "nothing was open";
}

TEST(LeaseTimes, ALeaseThatIsGivenUpInTheGateWasWaitedFor) {
  LeaseTimes times;
  times.park(seconds(10));
  times.leave(seconds(14));
  EXPECT_EQ(times.waited(), seconds(4));
  EXPECT_EQ(times.held(seconds(20)), Nanos{});
}

TEST(LeaseTimes, AStopInsideAnIterationIsWaitingAndNotHolding) {
  LeaseTimes times;
  times.open(seconds(10), seconds(10), false);
  times.stop_inside(seconds(12));
  EXPECT_EQ(times.held(seconds(15)), seconds(2));
  EXPECT_EQ(times.num_interruptions(), 1U);
  times.go_on_inside(seconds(12), seconds(15));
  EXPECT_EQ(times.waited(), seconds(3));
  EXPECT_EQ(times.held(seconds(16)), seconds(3));
  times.go_on_without();
  EXPECT_EQ(times.held(seconds(20)), seconds(2)) << "no lease was open after all";
}

TEST(LeaseTimes, WithoutACoordinatorTheGateOpensOnce) {
  LeaseTimes times;
  times.open_unmanaged(seconds(10));
  times.open_unmanaged(seconds(15));
  EXPECT_EQ(times.held(seconds(20)), seconds(10));
}

TEST(LeaseTimes, AWaitForMemoryInsideAnIterationIsMoving) {
  LeaseTimes times;
  times.add_moving(millis(30));
  EXPECT_EQ(times.moving(), millis(30));
  EXPECT_EQ(times.waited(), Nanos{});
}

}  // namespace
}  // namespace gpushare::client
