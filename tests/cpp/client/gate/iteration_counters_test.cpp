#include "csrc/client/gate/iteration_counters.h"

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

Boundary step(Bytes peak) {
  return {.kind = wire::BoundaryKind::kOptimizer,
          .is_iteration = true,
          .is_optimizer_step = true,
          .peak = peak,
          .resident = mib(8)};
}

TEST(IterationCounters, CountsIntoThePage) {
  IterationCounters counters;
  wire::LeasePage page{};
  counters.enter(&page, millis(10));
  EXPECT_TRUE(counters.is_in_iteration());
  EXPECT_EQ(page.changed_ns.load(), millis(10).value());
  counters.leave(&page, millis(14), step(mib(6)));
  EXPECT_FALSE(counters.is_in_iteration());
  EXPECT_EQ(page.iterations.load(), 1U);
  EXPECT_EQ(page.optimizer_steps.load(), 1U);
  EXPECT_EQ(page.busy_ns.load(), millis(4).value());
  EXPECT_EQ(page.changed_ns.load(), millis(14).value());
  EXPECT_EQ(page.boundary_kind.load(), static_cast<std::uint32_t>(wire::BoundaryKind::kOptimizer));
  EXPECT_EQ(page.resident_bytes.load(), mib(8).value());
}

TEST(IterationCounters, ASecondForwardIsTheSameIteration) {
  IterationCounters counters;
  counters.enter(nullptr, millis(10));
  counters.enter(nullptr, millis(12));
  counters.leave(nullptr, millis(14), step(mib(2)));
  EXPECT_EQ(counters.busy(), millis(4));
  EXPECT_EQ(counters.iterations(), 1U);
}

TEST(IterationCounters, ABrokenIterationCountsItsTimeOnly) {
  IterationCounters counters;
  counters.enter(nullptr, millis(10));
  counters.leave(nullptr, millis(15),
                 {.kind = wire::BoundaryKind::kException,
                  .is_iteration = false,
                  .is_optimizer_step = false,
                  .peak = mib(64),
                  .resident = mib(8)});
  EXPECT_EQ(counters.iterations(), 0U);
  EXPECT_EQ(counters.busy(), millis(5));
  EXPECT_EQ(counters.expected_peak(), Bytes{0});
  EXPECT_EQ(counters.highest_peak(), mib(64));
}

TEST(IterationCounters, ExpectsTheHighestOfTheLastEight) {
  IterationCounters counters;
  const auto iterate = [&](Bytes peak) {
    counters.enter(nullptr, millis(1));
    counters.leave(nullptr, millis(2), step(peak));
  };
  iterate(mib(64));
  for (int i = 0; i < 7; ++i)
    iterate(mib(4));
  EXPECT_EQ(counters.expected_peak(), mib(64));
  iterate(mib(6));
  EXPECT_EQ(counters.expected_peak(), mib(6));
  EXPECT_EQ(counters.highest_peak(), mib(64));
}

TEST(IterationCounters, ShiftsWhatIsExpectedAndNotWhatWas) {
  IterationCounters counters;
  counters.enter(nullptr, millis(1));
  counters.leave(nullptr, millis(2), step(mib(64)));
  counters.shift_peaks(Bytes{} - mib(60));
  EXPECT_EQ(counters.expected_peak(), mib(4));
  counters.shift_peaks(mib(10));
  EXPECT_EQ(counters.expected_peak(), mib(14));
  counters.shift_peaks(Bytes{} - mib(60));
  EXPECT_EQ(counters.expected_peak(), Bytes{0});
  EXPECT_EQ(counters.highest_peak(), mib(64));
}

TEST(IterationCounters, TellsTrainingFromEvaluation) {
  IterationCounters counters;
  wire::LeasePage page{};
  Boundary forward = step(mib(2));
  forward.kind = wire::BoundaryKind::kForward;
  for (int i = 0; i < 3; ++i) {
    counters.enter(&page, millis(100));
    counters.leave(&page, millis(140), step(mib(2)));
    counters.enter(&page, millis(200));
    counters.leave(&page, millis(210), forward);
  }
  EXPECT_EQ(page.training_ns.load(), millis(40).value());
  EXPECT_EQ(page.training_tail_ns.load(), millis(40).value());
  EXPECT_EQ(page.evaluation_ns.load(), millis(10).value());
  EXPECT_EQ(page.evaluation_tail_ns.load(), millis(10).value());
  wire::LeasePage next{};
  counters.publish(next);
  EXPECT_EQ(next.training_ns.load(), millis(40).value());
  counters.forget_times();
  counters.publish(next);
  EXPECT_EQ(next.training_ns.load(), 0);
  EXPECT_EQ(next.evaluation_ns.load(), 0);
}

TEST(IterationCounters, AGapEndsWhenItsThreadComesNotWhenItMayGoOn) {
  IterationCounters counters;
  wire::LeasePage page{};
  for (const int gap : {50, 4, 4, 4, 20}) {  // the first does not count
    counters.enter(&page, millis(100));
    counters.leave(&page, millis(200), step(mib(2)));
    counters.come(&page, millis(200 + gap));
    counters.come(&page, millis(300));  // it tries the gate again
  }
  EXPECT_EQ(page.gap_ns.load(), millis(4).value());
  EXPECT_EQ(page.mean_gap_ns.load(), millis(8).value());
  counters.enter(&page, millis(400));
  counters.forget();  // closed inside the iteration: what follows is no gap
  counters.come(&page, seconds(9));
  counters.forget_times();
  counters.publish(page);
  EXPECT_EQ(page.gap_ns.load(), 0);
  EXPECT_EQ(page.mean_gap_ns.load(), 0);
}

TEST(IterationCounters, FillsANewPage) {
  IterationCounters counters;
  for (int i = 0; i < 3; ++i) {
    counters.enter(nullptr, millis(1));
    counters.leave(nullptr, millis(2), step(mib(2)));
  }
  wire::LeasePage page{};
  counters.publish(page);
  EXPECT_EQ(page.iterations.load(), 3U);
  EXPECT_EQ(page.busy_ns.load(), millis(3).value());
}

}  // namespace
}  // namespace gpushare::client
