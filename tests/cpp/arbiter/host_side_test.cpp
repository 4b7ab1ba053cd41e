// What a host's coordinator says, and which orders it takes.
#include "csrc/arbiter/host_side.h"

#include <vector>

#include <gtest/gtest.h>

namespace gpushare::arbiter {
namespace {

const host::GangName kGang{1000, "red"};

TEST(HostSide, SaysOnlyWhatHasChanged) {
  HostSide side;
  host::RankReport report{.gang = kGang, .job = JobId{1}, .ranks = 2, .wants = true};
  side.report(report, 0);
  sched::Singles singles{.weights = {{1000, 2.0}}, .first = sched::Standing{}};
  side.note_singles(0, singles);
  EXPECT_TRUE(side.has_news());
  EXPECT_EQ(side.take_changes().size(), 2U);
  EXPECT_FALSE(side.has_news());
  EXPECT_TRUE(side.take_changes().empty());
  report.steps = 5;
  side.report(report, 0);
  EXPECT_FALSE(side.has_news()) << "the arbiter asks for steps";
  EXPECT_EQ(side.take_changes().size(), 1U);
  report.wants = false;
  side.report(report, 0);
  EXPECT_TRUE(side.has_news());
  side.take_changes();
  side.forget(JobId{1});
  EXPECT_EQ(side.take_changes(), std::vector<HostMessage>{Gone{JobId{1}}});
  side.report(report, 0);
  side.take_changes();
  side.begin();
  EXPECT_EQ(side.take_changes().size(), 2U) << "a new connection is told all";
}

TEST(HostSide, TakesNoOrderOfAnOlderEpochOrForARankThatHasEnded) {
  HostSide side;
  side.report({.gang = kGang, .job = JobId{1}, .ranks = 2}, 0);
  EXPECT_TRUE(side.take({.epoch = 5, .order = {.job = JobId{1}}}).has_value());
  EXPECT_FALSE(side.take({.epoch = 4, .order = {.job = JobId{1}}}).has_value());
  EXPECT_FALSE(side.take({.epoch = 6, .order = {.job = JobId{2}}}).has_value());
  EXPECT_EQ(side.seen_epoch(), 6U);
}

}  // namespace
}  // namespace gpushare::arbiter
