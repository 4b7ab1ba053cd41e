#include "csrc/watch/live_limit.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/cpp/support/watch_loop_player.h"

namespace gpushare::watch {
namespace {

struct LiveLimitTest : ::testing::Test {
  Bytes live;
  Boundaries machine{false, [this] { return live; }};
};

TEST_F(LiveLimitTest, ABoundaryWithFarMoreLiveBytesThanBeforeIsNone) {
  live = mib(100);
  EXPECT_EQ(boundaries_in(machine, "FS"), "be");
  EXPECT_EQ(machine.persistent(), mib(100));
  live = mib(500);
  EXPECT_EQ(boundaries_in(machine, "FS"), "b-");
  EXPECT_EQ(machine.persistent(), mib(100));
  live = mib(100);
  EXPECT_EQ(boundaries_in(machine, "FS"), "xe");
}

TEST_F(LiveLimitTest, AJobThatStaysLargerGetsItsBoundariesBack) {
  live = mib(100);
  play(machine, "FS");
  live = mib(500);
  const std::string signs = boundaries_in(machine, "FS FS FS FS FS");
  EXPECT_GE(std::count(signs.begin(), signs.end(), 'e'), 2);
  EXPECT_EQ(boundaries_in(machine, "FS FS"), "bebe");
}

TEST_F(LiveLimitTest, SmallJobsAreNeverRefused) {
  live = mib(1);
  play(machine, "FS");
  live = mib(50);
  EXPECT_EQ(boundaries_in(machine, "FS"), "be");
}

TEST_F(LiveLimitTest, ABoundaryThatTheUserNamesIsNeverRefused) {
  live = mib(100);
  play(machine, "FS");
  live = mib(500);
  EXPECT_EQ(boundaries_in(machine, "FJ"), "be");
  EXPECT_EQ(boundaries_in(machine, "(F)"), "b-e");
}

TEST(LiveLimit, WithoutAFigureRefusesNothing) {
  LiveLimit limit{{}};
  EXPECT_FALSE(limit.refuses());
  EXPECT_EQ(limit.last(), Bytes{});
}

}  // namespace
}  // namespace gpushare::watch
