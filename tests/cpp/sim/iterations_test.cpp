#include "csrc/sim/run/iterations.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

namespace gpushare::sim {
namespace {

TEST(Iterations, CountsTheBoundariesThatHavePassed) {
  Iterations runs;
  runs.begin(millis(10), millis(100), millis(50));
  EXPECT_EQ(runs.pass(millis(109)), 0U);
  EXPECT_EQ(runs.pass(millis(110)), 1U);
  EXPECT_TRUE(runs.is_in_gap(millis(110)));
  EXPECT_EQ(runs.changed_at(millis(110)), millis(110));
  EXPECT_EQ(runs.pass(millis(160)), 0U);
  EXPECT_FALSE(runs.is_in_gap(millis(160)));
  EXPECT_EQ(runs.changed_at(millis(160)), millis(160));
  EXPECT_EQ(runs.boundary(1), millis(260));
  EXPECT_EQ(runs.boundary(3), millis(560));
  EXPECT_EQ(runs.pass(millis(560)), 3U);
  EXPECT_EQ(runs.busy(), millis(400));
}

TEST(Iterations, AreAtABoundaryForAMomentWithoutAGap) {
  Iterations runs;
  runs.begin(Nanos{0}, millis(100), Nanos{0});
  EXPECT_FALSE(runs.is_at_boundary(Nanos{0})) << "each lease is good for an iteration";
  EXPECT_EQ(runs.pass(millis(300)), 3U);
  EXPECT_TRUE(runs.is_at_boundary(millis(300)));
  EXPECT_FALSE(runs.is_in_gap(millis(300)));
  EXPECT_EQ(runs.pass(millis(301)), 0U);
  EXPECT_FALSE(runs.is_at_boundary(millis(301)));
}

TEST(Iterations, TakeLongerFromAChangeOn) {
  Iterations runs;
  runs.begin(Nanos{0}, millis(100), millis(10));
  runs.pass(millis(60));
  runs.change(millis(60), millis(200));
  EXPECT_EQ(runs.boundary(1), millis(140)) << "40 ms were left";
  EXPECT_EQ(runs.boundary(2), millis(350));
  EXPECT_EQ(runs.pass(millis(145)), 1U);
  EXPECT_EQ(runs.busy(), millis(140));
  runs.change(millis(145), millis(100));
  EXPECT_EQ(runs.boundary(1), millis(250)) << "in the gap the whole iteration is left";
}

// One iteration after the other, as the class does not do it.
TEST(IterationsProperty, CountAsStepByStep) {
  EXPECT_TRUE(rc::check("the arithmetic counts what steps count", [] {
    const Nanos iteration{*rc::gen::inRange(1, 50)};
    const Nanos gap{*rc::gen::inRange(0, 30)};
    Iterations runs;
    runs.begin(Nanos{7}, iteration, gap);
    std::uint64_t counted = 0;
    Nanos now{7};
    const int num_looks = *rc::gen::inRange(1, 6);
    for (int i = 0; i < num_looks; ++i) {
      now += Nanos{*rc::gen::inRange(0, 200)};
      counted += runs.pass(now);
    }
    std::uint64_t stepped = 0;
    Nanos boundary = Nanos{7} + iteration;
    for (; boundary <= now; boundary += gap + iteration)
      ++stepped;
    RC_ASSERT(counted == stepped);
    RC_ASSERT(runs.boundary(1) == boundary);
    RC_ASSERT(runs.busy() == iteration * static_cast<std::int64_t>(stepped));
  }));
}

}  // namespace
}  // namespace gpushare::sim
