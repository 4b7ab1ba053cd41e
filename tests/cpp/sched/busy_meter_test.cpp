#include "csrc/sched/job/busy_meter.h"

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

TEST(BusyMeter, IsTheShareOfTimeWhileTimeIsShort) {
  BusyMeter meter(seconds(100));
  EXPECT_EQ(meter.share(seconds(100)), 0.0);
  meter.turn(true, seconds(100));
  EXPECT_DOUBLE_EQ(meter.share(seconds(101)), 1.0);
  meter.turn(false, seconds(101));
  EXPECT_NEAR(meter.share(seconds(102)), 0.5, 0.01);
}

TEST(BusyMeter, ForgetsWhatIsLongAgo) {
  BusyMeter meter(Nanos{0});
  meter.turn(true, Nanos{0});
  meter.turn(false, seconds(1000));
  EXPECT_LT(meter.share(seconds(1300)), 0.01);
  meter.turn(true, seconds(1300));
  EXPECT_GT(meter.share(seconds(1600)), 0.99);
}

// What status calls GOT.
TEST(BusyMeter, SharesOfOneLaneAddUp) {
  BusyMeter lane(Nanos{});
  BusyMeter first(lane.began());
  BusyMeter second(lane.began());
  for (int turn = 0; turn < 30; ++turn) {
    const Nanos from = seconds(10 * turn);
    first.add(from, from + seconds(6));
    second.add(from + seconds(6), from + seconds(9));
    lane.add(from, from + seconds(9));
  }
  const Nanos now = seconds(300);
  EXPECT_NEAR(first.share(now) + second.share(now), lane.share(now), 1e-9);
  EXPECT_NEAR(first.share(now), 0.6, 0.03);
  // A job that has just come has had its part of the same time, not of its own short one.
  BusyMeter third(lane.began());
  third.add(now, now + seconds(1));
  EXPECT_LT(third.share(now + seconds(1)), 0.02);
}

}  // namespace
}  // namespace gpushare::sched
