#include "csrc/client/memory/pace.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

TEST(Pace, WithoutARateAllOfItGoesAtOnce) {
  Pace pace;
  for (int i = 0; i < 3; ++i) {
    const Pace::Turn turn = pace.next(Bytes{0}, gib(100), seconds(1));
    EXPECT_EQ(turn.bytes, gib(100));
    EXPECT_EQ(turn.wait, Nanos{0});
  }
}

TEST(Pace, APortionIsWhatTenMillisecondsMayTake) {
  EXPECT_EQ(Pace().next(gib(1), gib(1), seconds(1)).bytes, mib(10));
  EXPECT_EQ(Pace().next(mib(1), gib(1), seconds(1)).bytes, mib(2)) << "one chunk at least";
  EXPECT_EQ(Pace().next(gib(1000), gib(1), seconds(1)).bytes, mib(64));
  EXPECT_EQ(Pace().next(gib(1), mib(4), seconds(1)).bytes, mib(4)) << "no more than there is";
  EXPECT_EQ(Pace(mib(16)).next(gib(1), gib(1), seconds(1)).bytes, mib(16)) << "one piece at least";
  EXPECT_EQ(Pace(mib(16)).next(gib(4), gib(1), seconds(1)).bytes, mib(32)) << "whole pieces";
}

TEST(Pace, TheNextPortionWaitsUntilTheRateAllowsIt) {
  Pace pace;
  EXPECT_EQ(pace.next(mib(2), gib(1), seconds(5)).bytes, mib(2));
  const Pace::Turn early = pace.next(mib(2), gib(1), seconds(5) + millis(400));
  EXPECT_EQ(early.bytes, Bytes{0});
  EXPECT_EQ(early.wait, millis(600));
  EXPECT_EQ(pace.next(mib(2), gib(1), seconds(6)).bytes, mib(2));
  EXPECT_EQ(pace.next(mib(2), gib(1), seconds(6)).wait, seconds(1));
}

TEST(Pace, ManyPortionsTakeAsLongAsTheRateSays) {
  Pace pace;
  const Nanos start = seconds(100);
  Nanos now = start;
  Bytes copied;
  while (copied < gib(1)) {
    const Pace::Turn turn = pace.next(mib(300), gib(1) - copied, now);
    copied += turn.bytes;
    now += turn.wait;
  }
  // The last portion's pause is not waited for.
  EXPECT_NEAR(to_seconds(now - start), 1024.0 / 300, 0.02);
}

TEST(Pace, TimeThatWasNotUsedEarnsNothing) {
  Pace pace;
  EXPECT_EQ(pace.next(mib(2), gib(1), seconds(1)).bytes, mib(2));
  EXPECT_EQ(pace.next(mib(2), gib(1), seconds(1000)).bytes, mib(2));
  EXPECT_EQ(pace.next(mib(2), gib(1), seconds(1000)).wait, seconds(1));
}

TEST(Pace, WhoWantsNothingWaitsForNothing) {
  Pace pace;
  EXPECT_EQ(pace.next(mib(2), gib(1), seconds(1)).bytes, mib(2));
  EXPECT_EQ(pace.next(mib(2), Bytes{0}, seconds(1)).wait, Nanos{0});
  EXPECT_EQ(pace.next(mib(2), gib(1), seconds(1)).wait, seconds(1)) << "it is not forgotten";
}

TEST(Pace, ANewRateCountsAtOnce) {
  Pace pace;
  EXPECT_EQ(pace.next(mib(1), gib(1), seconds(1)).bytes, mib(2));
  EXPECT_EQ(pace.next(mib(1), gib(1), seconds(2)).wait, seconds(1));
  EXPECT_GT(pace.next(mib(4), gib(1), seconds(2)).bytes, Bytes{0});
  EXPECT_EQ(pace.next(Bytes{0}, gib(1), seconds(2)).bytes, gib(1));
}

TEST(Pace, TheSmallestAndTheLargestRateDoNotWrap) {
  Pace pace;
  EXPECT_EQ(pace.next(Bytes{1}, gib(1), seconds(1)).bytes, mib(2));
  EXPECT_GT(pace.next(Bytes{1}, gib(1), seconds(2)).wait, seconds(1'000'000));
  constexpr Bytes kLargest{std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(pace.next(kLargest, gib(1), seconds(3)).bytes, mib(64));
  EXPECT_EQ(pace.next(kLargest, gib(1), seconds(3) + millis(1)).bytes, mib(64));
}

}  // namespace
}  // namespace gpushare::client
