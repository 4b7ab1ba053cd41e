// Whatever the jobs, as long as each fits the device alone, all of them finish and none is denied;
// and nobody sits out memory_wait, which would hide that it was forgotten.
#include <rapidcheck.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "csrc/sim/simulator.h"

namespace gpushare::sim {
namespace {

// At most 5 jobs with 60 iterations of 0.5 s each, and much of that again for copies.
constexpr double kMostSeconds = 400;

std::string any_job(int capacity_mib) {
  const int peak = *rc::gen::inRange(1, capacity_mib + 1);
  const int live = *rc::gen::inRange(0, peak + 1);
  return fmt::format(
      "job at={}ms iteration={}ms gap={}ms iterations={} live={}MiB peak={}MiB weight={} "
      "priority={}\n",
      *rc::gen::inRange(0, 2000), *rc::gen::inRange(1, 400), *rc::gen::inRange(0, 100),
      *rc::gen::inRange(1, 60), live, peak, *rc::gen::inRange(1, 5),
      *rc::gen::element<std::string>("guaranteed", "interactive", "normal", "opportunistic"));
}

TEST(SimulatorProperty, EveryJobThatFitsAloneFinishes) {
  const bool is_held = rc::check("every job that fits alone finishes", [] {
    const int capacity_mib = *rc::gen::inRange(10, 1000);
    std::string text = fmt::format(
        "device capacity={}MiB policy={} num_lanes={} bandwidth={}MiB min_quantum={}ms\n",
        capacity_mib, *rc::gen::elementOf(policy_names()), *rc::gen::inRange(1, 4),
        *rc::gen::inRange(1000, 4000), *rc::gen::inRange(1, 500));
    const int num_jobs = *rc::gen::inRange(1, 6);
    for (int i = 0; i < num_jobs; ++i)
      text += any_job(capacity_mib);
    const auto report = run_scenario(text);
    RC_ASSERT(report.has_value());
    if (report->find(R"("outcome":"denied")") != std::string::npos ||
        report->find(R"("outcome":"running")") != std::string::npos) {
      RC_FAIL(text + *report);
    }
    const std::string key = "\"makespan_seconds\":";
    const double makespan = std::strtod(report->c_str() + report->find(key) + key.size(), nullptr);
    if (makespan > kMostSeconds) RC_FAIL(text + *report);
  });
  EXPECT_TRUE(is_held);
}

// The simulator checks the sum at each step.
TEST(SimulatorProperty, JobsTogetherStayWithinTheHostBudget) {
  EXPECT_TRUE(rc::check("the host budget holds for all jobs together", [] {
    const int capacity_mib = *rc::gen::inRange(10, 1000);
    std::string text = fmt::format(
        "device capacity={}MiB policy={} num_lanes={} bandwidth={}MiB min_quantum={}ms "
        "host_budget={}MiB host_file={}MiB until=100s\n",
        capacity_mib, *rc::gen::elementOf(policy_names()), *rc::gen::inRange(1, 4),
        *rc::gen::inRange(1000, 4000), *rc::gen::inRange(1, 500),
        *rc::gen::inRange(0, capacity_mib), *rc::gen::inRange(0, capacity_mib));
    const int num_jobs = *rc::gen::inRange(2, 6);
    for (int i = 0; i < num_jobs; ++i)
      text += any_job(capacity_mib);
    const auto report = run_scenario(text);
    RC_ASSERT(report.has_value());
  }));
}

// One that was next gave room to a Need, and was granted it again at once, for ever: the Need
// waited for another lane's boundary.
TEST(Simulator, WhatIsGivenForANeedDoesNotGoBack) {
  const auto report = run_scenario(
      "device capacity=235MiB policy=fifo num_lanes=2 bandwidth=1803MiB min_quantum=189ms\n"
      "job at=1140ms iteration=244ms gap=72ms iterations=40 live=45MiB peak=77MiB "
      "priority=opportunistic\n"
      "job at=421ms iteration=302ms gap=55ms iterations=7 live=122MiB peak=139MiB\n"
      "job at=140ms iteration=268ms gap=60ms iterations=48 live=97MiB peak=161MiB "
      "priority=opportunistic\n"
      "job at=1529ms iteration=70ms gap=42ms iterations=32 live=171MiB peak=212MiB "
      "priority=opportunistic\n");
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  EXPECT_EQ(report->find(R"("outcome":"denied")"), std::string::npos) << *report;
}

// Its page was read after it had dropped memory and before it said so: that was subtracted twice.
TEST(Simulator, WhatAGiverDroppedCountsOnce) {
  const auto report = run_scenario(
      "device capacity=137MiB policy=fifo bandwidth=3066MiB min_quantum=50ms host_budget=16MiB "
      "until=100s\n"
      "job at=1125ms iteration=93ms gap=0ms iterations=28 live=74MiB peak=114MiB weight=3 "
      "priority=opportunistic\n"
      "job at=810ms iteration=165ms gap=25ms iterations=50 live=19MiB peak=77MiB weight=2 "
      "priority=opportunistic\n"
      "job at=1297ms iteration=205ms gap=1ms iterations=45 live=23MiB peak=55MiB weight=2 "
      "priority=guaranteed\n");
  EXPECT_TRUE(report.has_value());
}

}  // namespace
}  // namespace gpushare::sim
