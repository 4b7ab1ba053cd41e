#include "csrc/sched/busy_meter.h"

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

}  // namespace
}  // namespace gpushare::sched
