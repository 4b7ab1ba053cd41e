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

// Of any user, each of whom has room for any of his jobs, and with any limits that are elastic.
std::string any_limited_jobs(int num, int capacity_mib) {
  const int limit_mib = *rc::gen::inRange(1, capacity_mib + 1);
  std::string text = fmt::format(
      "user name=limited memory_limit={}MiB\nuser name=elastic memory_limit={}MiB "
      "share_limit={} elastic=1\n",
      limit_mib, limit_mib, *rc::gen::inRange(1, 101) / 100.0);
  for (int i = 0; i < num; ++i) {
    const bool is_limited = *rc::gen::arbitrary<bool>();
    std::string job = any_job(is_limited ? limit_mib : capacity_mib);
    job.pop_back();
    text += fmt::format("{} user={} share_limit={} limit={}MiB elastic=1\n", job,
                        is_limited ? "limited" : "elastic", *rc::gen::inRange(1, 101) / 100.0,
                        *rc::gen::inRange(1, capacity_mib + 1));
  }
  return text;
}

void check_that_all_finish(bool is_limited) {
  const bool is_held = rc::check("every job that fits alone finishes", [is_limited] {
    const int capacity_mib = *rc::gen::inRange(10, 1000);
    std::string text = fmt::format(
        "device capacity={}MiB policy={} num_lanes={} bandwidth={}MiB min_quantum={}ms\n",
        capacity_mib, *rc::gen::elementOf(policy_names()), *rc::gen::inRange(1, 4),
        *rc::gen::inRange(1000, 4000), *rc::gen::inRange(1, 500));
    const int num_jobs = *rc::gen::inRange(1, 6);
    if (is_limited) {
      text += any_limited_jobs(num_jobs, capacity_mib);
    } else {
      for (int i = 0; i < num_jobs; ++i)
        text += any_job(capacity_mib);
    }
    const auto report = run_scenario(text);
    if (!report.has_value()) RC_FAIL(text + report.error().message());
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

TEST(SimulatorProperty, EveryJobThatFitsAloneFinishes) { check_that_all_finish(false); }
TEST(SimulatorProperty, EveryJobThatFitsAloneAndItsUserFinishes) { check_that_all_finish(true); }

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

// The next jobs of two lanes took the same bytes from each other: the order of lanes in which they
// were served was not that by which one gives nothing to the other.
TEST(Simulator, WhatTwoLanesAreShortOfGoesToOne) {
  const auto report = run_scenario(
      "device capacity=119MiB policy=pack num_lanes=2 bandwidth=1506MiB min_quantum=460ms\n"
      "user name=limited memory_limit=54MiB\n"
      "user name=elastic memory_limit=54MiB share_limit=0.8 elastic=1\n"
      "job at=1325ms iteration=277ms gap=68ms iterations=37 live=22MiB peak=77MiB weight=2 "
      "priority=opportunistic user=elastic share_limit=0.93 limit=28MiB elastic=1\n"
      "job at=351ms iteration=288ms gap=93ms iterations=22 live=12MiB peak=46MiB weight=4 "
      "user=elastic share_limit=0.3 limit=99MiB elastic=1\n"
      "job at=628ms iteration=346ms gap=87ms iterations=20 live=57MiB peak=80MiB weight=3 "
      "user=elastic share_limit=0.21 limit=91MiB elastic=1\n"
      "job at=1558ms iteration=119ms gap=11ms iterations=13 live=0MiB peak=36MiB weight=3 "
      "priority=guaranteed user=limited share_limit=0.29 limit=37MiB elastic=1\n"
      "job at=1562ms iteration=215ms gap=79ms iterations=38 live=26MiB peak=39MiB weight=3 "
      "priority=guaranteed user=limited share_limit=0.31 limit=106MiB elastic=1\n");
  EXPECT_TRUE(report.has_value()) << report.error().to_string();
}

// What one of a limited user's jobs gave for another it was given again, ahead of its lease.
TEST(Simulator, WhatIsGivenForAUsersJobDoesNotGoBack) {
  const auto report = run_scenario(
      "device policy=pack capacity=4GiB num_lanes=2 bandwidth=8GiB min_quantum=100ms until=60s\n"
      "user name=alice memory_limit=600MiB\n"
      "job user=alice iteration=5ms iterations=10000000 live=207MiB peak=226MiB\n"
      "job user=alice iteration=100ms iterations=10000000 live=380MiB peak=532MiB\n"
      "job user=alice iteration=20ms iterations=10000000 live=346MiB peak=449MiB\n");
  EXPECT_TRUE(report.has_value()) << report.error().to_string();
}

// The host tier is full: who has his memory goes on, though beyond an elastic limit.
TEST(Simulator, AnElasticLimitLeavesNobodyShortWhoCouldNotBegin) {
  const auto report = run_scenario(
      "device policy=fair capacity=1GiB min_quantum=100ms host_budget=64MiB memory_wait=60s\n"
      "job iteration=20ms iterations=2000 live=700MiB peak=750MiB share_limit=0.1 elastic=1\n"
      "job at=2s iteration=20ms iterations=100 live=100MiB peak=600MiB\n");
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
