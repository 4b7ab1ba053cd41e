#include "csrc/sched/job/recent_times.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

TEST(RecentTimes, AreKnownFromThreeOn) {
  RecentTimes times;
  EXPECT_EQ(times.median(), Nanos{0});
  times.add(millis(5));
  times.add(millis(7));
  EXPECT_FALSE(times.is_known());
  times.add(millis(6));
  EXPECT_TRUE(times.is_known());
  EXPECT_EQ(times.median(), millis(6));
}

TEST(RecentTimes, OneOddTimeDoesNotCount) {
  RecentTimes times;
  for (const int ms : {10, 11, 900, 10, 11})
    times.add(millis(ms));
  EXPECT_EQ(times.median(), millis(11));
}

TEST(RecentTimes, WildClaimsCanBeAdded) {
  RecentTimes times;
  times.add(Nanos{std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(times.median(), seconds(1'000'000));
  times.add(Nanos{-1});
  EXPECT_EQ(times.median(), Nanos{0}) << "of an even number, the lower one";
}

TEST(RecentTimes, OldOnesAreForgotten) {
  RecentTimes times;
  for (std::size_t i = 0; i < RecentTimes::kMost; ++i)
    times.add(millis(10));
  for (std::size_t i = 0; i <= RecentTimes::kMost / 2; ++i)
    times.add(millis(20));
  EXPECT_EQ(times.median(), millis(20));
}

}  // namespace
}  // namespace gpushare::sched
