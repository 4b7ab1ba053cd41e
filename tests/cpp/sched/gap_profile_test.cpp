#include "csrc/sched/job/gap_profile.h"

#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <optional>

#include <gtest/gtest.h>

namespace gpushare::sched::testing {
namespace {

GapProfile gaps_of(std::initializer_list<int> times) {
  GapProfile gaps;
  for (const int time : times)
    gaps.add(millis(time));
  return gaps;
}

TEST(GapProfile, WhatCouldHitTheShortestIsRisky) {
  const GapProfile gaps = gaps_of({320, 32, 160, 32});
  EXPECT_EQ(gaps.risky_from(Nanos{0}, millis(10), 0), millis(22));
  EXPECT_EQ(gaps.risky_from(millis(25), millis(10), 0), millis(25));
  EXPECT_EQ(gaps.next_over(millis(25)), millis(34));
}

TEST(GapProfile, OneThatIsHardlyOverMayStillCome) {
  const GapProfile gaps = gaps_of({32, 160});
  EXPECT_EQ(gaps.risky_from(millis(33), millis(10), 0), millis(33));
  EXPECT_EQ(gaps.risky_from(millis(34), millis(10), 0), millis(150));
}

TEST(GapProfile, NothingIsSaidOfALongerGapThanEver) {
  EXPECT_EQ(GapProfile{}.risky_from(Nanos{0}, millis(10), 0), std::nullopt);
  EXPECT_EQ(GapProfile{}.next_over(Nanos{0}), std::nullopt);
  const GapProfile gaps = gaps_of({32, 160});
  EXPECT_EQ(gaps.risky_from(millis(170), millis(10), 0), std::nullopt);
  EXPECT_EQ(gaps.next_over(millis(170)), std::nullopt);
}

TEST(GapProfile, FewCasesOfManyAreNoRisk) {
  GapProfile gaps = gaps_of({32});
  for (int i = 0; i < 24; ++i)
    gaps.add(millis(160));
  EXPECT_EQ(gaps.risky_from(Nanos{0}, millis(10), 0.04), millis(150));
  // Two of 26 are.
  gaps.add(millis(32));
  EXPECT_EQ(gaps.risky_from(Nanos{0}, millis(10), 0.04), millis(22));
}

TEST(GapProfile, CasesCountThatFallIntoOneRun) {
  GapProfile gaps;
  for (int i = 0; i < 60; ++i)
    gaps.add(millis(160));
  for (const int time : {10, 20, 30, 40})
    gaps.add(millis(time));
  // 1.6 % of the returns end in each run of 5 ms, 4.7 % in one of 25 ms from 10 ms on.
  EXPECT_EQ(gaps.risky_from(Nanos{0}, millis(5), 0.04), millis(155));
  EXPECT_EQ(gaps.risky_from(Nanos{0}, millis(25), 0.04), millis(5));
}

TEST(GapProfile, ForgetsWhatWasLongAgo) {
  GapProfile gaps;
  gaps.add(millis(5));
  for (std::size_t i = 0; i < GapProfile::kMostGaps - 1; ++i)
    gaps.add(millis(200));
  EXPECT_EQ(gaps.risky_from(Nanos{0}, millis(1), 0), millis(4));
  gaps.add(millis(200));
  EXPECT_EQ(gaps.risky_from(Nanos{0}, millis(1), 0), millis(199));
}

TEST(GapProfile, WhatIsRememberedGoesWithTheFirstGapThatIsSeen) {
  GapProfile gaps;
  gaps.remember(Nanos{0});
  EXPECT_TRUE(gaps.empty()) << "it is unknown";
  gaps.remember(millis(70));
  EXPECT_EQ(gaps.risky_from(Nanos{0}, Nanos{0}, 0), millis(70));
  EXPECT_EQ(gaps.median(), Nanos{0}) << "none of its own was seen";
  gaps.add(millis(900));
  EXPECT_EQ(gaps.risky_from(Nanos{0}, Nanos{0}, 0), millis(900));
}

TEST(GapProfile, HasAMedian) {
  GapProfile gaps;
  EXPECT_EQ(gaps.median(), Nanos{0});
  for (const int time : {300, 5, 200, 5, 6})
    gaps.add(millis(time));
  EXPECT_EQ(gaps.median(), millis(6));
}

// By the definition: of the returns that may still come, those that fall into the run.
std::optional<Nanos> first_risk(const std::deque<Nanos>& last,
                                Nanos elapsed,
                                Nanos run,
                                double most) {
  const auto over_at = [](Nanos gap) { return gap + gap / 16; };
  std::optional<Nanos> first;
  for (const Nanos gap : last) {
    const Nanos begin = std::max(gap - run, elapsed);
    if (over_at(gap) <= elapsed || (first.has_value() && begin >= *first)) continue;
    double num = 0;
    double num_hit = 0;
    for (const Nanos other : last) {
      if (over_at(other) <= std::max(begin, elapsed)) continue;
      ++num;
      if (other - run <= begin) ++num_hit;
    }
    if (num_hit > most * num) first = begin;
  }
  return first;
}

TEST(GapProfile, AgreesWithItsDefinition) {
  EXPECT_TRUE(rc::check("risky_from, next_over and the median", [] {
    GapProfile gaps;
    std::deque<Nanos> last;
    const int num = *rc::gen::inRange(1, 150);
    for (int i = 0; i < num; ++i) {
      last.push_back(millis(*rc::gen::inRange(0, 40) * 5));
      gaps.add(last.back());
      if (last.size() > GapProfile::kMostGaps) last.pop_front();
    }
    const Nanos elapsed = millis(*rc::gen::inRange(0, 250));
    const Nanos run = millis(*rc::gen::inRange(0, 100));
    const double most = *rc::gen::inRange(0, 10) / 100.0;
    RC_ASSERT(gaps.risky_from(elapsed, run, most) == first_risk(last, elapsed, run, most));
    RC_ASSERT(gaps.next_over(elapsed).has_value() == first_risk(last, elapsed, run, 0).has_value());
    std::sort(last.begin(), last.end());
    RC_ASSERT(gaps.median() == last.at(last.size() / 2));
  }));
}

TEST(GapProfile, ATimeBeforeTheBeginningIsNone) {
  GapProfile gaps;
  gaps.add(Nanos{-5});
  EXPECT_EQ(gaps.risky_from(Nanos{-1}, Nanos{0}, 0), Nanos{0});
}

}  // namespace
}  // namespace gpushare::sched::testing
