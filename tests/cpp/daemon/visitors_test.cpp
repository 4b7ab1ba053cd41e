#include "csrc/daemon/server/visitors.h"

#include <cstddef>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpushare::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kAlice = 1;
constexpr std::uint32_t kBob = 2;
constexpr int kMostOfUser = static_cast<int>(Visitors::kMostOfUser);

TEST(Visitors, AUserWithTooManyLosesHisOldest) {
  Visitors visitors(1000);
  EXPECT_EQ(visitors.add(999, kBob, seconds(1)), std::nullopt);
  for (int i = 0; i < kMostOfUser; ++i)
    EXPECT_EQ(visitors.add(i, kAlice, seconds(2)), std::nullopt);
  EXPECT_EQ(visitors.add(500, kAlice, seconds(2)), 0);
  visitors.remove(0);
  EXPECT_EQ(visitors.add(501, kAlice, seconds(2)), 1);
}

TEST(Visitors, WhoWaitsToBeHeardIsNotTheFirstToGo) {
  Visitors visitors(1000);
  for (int i = 0; i < kMostOfUser; ++i)
    visitors.add(i, kAlice, seconds(2));
  while (visitors.hear(kMostOfUser - 1, seconds(2))) {
  }
  for (const int waiting : {0, 1, 5})
    EXPECT_FALSE(visitors.hear(waiting, seconds(2)));
  EXPECT_EQ(visitors.add(500, kAlice, seconds(3)), 2);
}

TEST(Visitors, InAllWhoHasTheMostLosesHisOldest) {
  Visitors visitors(3);
  visitors.add(1, kBob, seconds(1));
  visitors.add(2, kAlice, seconds(2));
  visitors.add(3, kAlice, seconds(3));
  EXPECT_EQ(visitors.add(4, kBob + 1, seconds(4)), 2);
}

TEST(Visitors, OneThatBecomesAJobCountsNoMore) {
  Visitors visitors(1000);
  for (int i = 0; i < 3 * kMostOfUser; ++i) {
    EXPECT_EQ(visitors.add(i, kAlice, seconds(1)), std::nullopt);
    visitors.remove(i);
  }
  visitors.remove(7);
  EXPECT_TRUE(visitors.empty());
}

TEST(Visitors, WhoSaysNothingIsNamed) {
  Visitors visitors(1000);
  visitors.add(1, kAlice, seconds(1));
  visitors.add(2, kAlice, seconds(1));
  EXPECT_TRUE(visitors.hear(2, seconds(4)));
  EXPECT_THAT(visitors.silent(seconds(1) + Visitors::kPatience), IsEmpty());
  EXPECT_THAT(visitors.silent(seconds(2) + Visitors::kPatience), ElementsAre(1));
}

TEST(Visitors, WhoSpeaksWithoutEndWaitsAndOthersDoNot) {
  Visitors visitors(1000);
  visitors.add(1, kAlice, seconds(1));
  visitors.add(2, kAlice, seconds(1));
  visitors.add(3, kBob, seconds(1));
  int heard = 0;
  while (visitors.hear(1, seconds(1)))
    ++heard;
  EXPECT_EQ(heard, 1000);
  EXPECT_FALSE(visitors.hear(2, seconds(1))) << "of the same user";
  EXPECT_TRUE(visitors.hear(3, seconds(1)));
  EXPECT_TRUE(visitors.hear(2, seconds(1) + millis(10)));
  EXPECT_THAT(visitors.silent(seconds(4)), IsEmpty()) << "who was not heard was not silent";
}

}  // namespace
}  // namespace gpushare::daemon
