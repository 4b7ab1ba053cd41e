#include "csrc/sched/gap_profile.h"

#include <gtest/gtest.h>

namespace gpushare::sched::testing {
namespace {

TEST(GapProfile, ExpectsTheShortestThatIsNotOver) {
  GapProfile gaps;
  EXPECT_TRUE(gaps.empty());
  EXPECT_EQ(gaps.next_after(Nanos{0}), std::nullopt);
  for (const int time : {300, 5, 200, 5})
    gaps.add(millis(time));
  EXPECT_EQ(gaps.next_after(Nanos{0}), millis(5));
  EXPECT_EQ(gaps.next_after(millis(4)), millis(5));
  EXPECT_EQ(gaps.next_after(millis(5)), millis(200));
  EXPECT_EQ(gaps.next_after(millis(250)), millis(300));
  EXPECT_EQ(gaps.next_after(millis(300)), std::nullopt);
}

TEST(GapProfile, ForgetsWhatWasLongAgo) {
  GapProfile gaps;
  gaps.add(millis(5));
  for (std::size_t i = 0; i < GapProfile::kMostGaps - 1; ++i)
    gaps.add(millis(200));
  EXPECT_EQ(gaps.next_after(Nanos{0}), millis(5));
  gaps.add(millis(200));
  EXPECT_EQ(gaps.next_after(Nanos{0}), millis(200));
}

TEST(GapProfile, ATimeBeforeTheBeginningIsNone) {
  GapProfile gaps;
  gaps.add(Nanos{-5});
  EXPECT_EQ(gaps.next_after(Nanos{-1}), Nanos{0});
}

}  // namespace
}  // namespace gpushare::sched::testing
