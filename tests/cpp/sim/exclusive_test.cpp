// The two ends of the scale: a cluster whose jobs do not share, and the best that could be.
#include <rapidcheck.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "csrc/sim/bound.h"
#include "csrc/sim/dispatch/central_queue.h"
#include "csrc/sim/run/simulation.h"
#include "csrc/sim/scenario/scenario.h"

namespace gpushare::sim {
namespace {

std::vector<const JobSpec*> all_of(const Scenario& scenario) {
  std::vector<const JobSpec*> jobs;
  for (const JobSpec& job : scenario.jobs)
    jobs.push_back(&job);
  return jobs;
}

double bound(const std::string& text) {
  const Scenario scenario = parse_scenario(text).value();
  return least_average_completion(scenario, all_of(scenario));
}

// Seconds from each job's arrival to its end.
std::vector<double> completions(const std::string& text) {
  const Scenario scenario = parse_scenario(text).value();
  const std::unique_ptr<Simulation> simulation = Simulation::create(scenario, false).value();
  EXPECT_TRUE(simulation->run({}).ok());
  std::vector<double> all;
  for (const SimJob& job : simulation->jobs())
    all.push_back(to_seconds(job.ended_at() - job.spec().arrival));
  return all;
}

// Of jobs, not of ranks.
double average_completion(const std::string& text) {
  const Scenario scenario = parse_scenario(text).value();
  const std::unique_ptr<Simulation> simulation = Simulation::create(scenario, false).value();
  EXPECT_TRUE(simulation->run({}).ok());
  double sum = 0;
  for (std::size_t job = 0; job < scenario.jobs.size(); ++job)
    sum += to_seconds(simulation->ranks_of(job).front().ended_at() - scenario.jobs[job].arrival);
  return sum / static_cast<double>(scenario.jobs.size());
}

TEST(Exclusive, OneQueueOverAllDevicesAndOneJobADevice) {
  const std::string text =
      "device capacity=2GiB policy=exclusive devices=2 switch=0s\n"
      "job name=long iteration=1s iterations=100 live=1MiB\n"
      "job name=short iteration=1s iterations=10 live=1MiB\n"
      "job name=third at=1s iteration=1s iterations=5 live=1MiB\n"
      "job name=fourth at=2s iteration=1s iterations=5 live=1MiB\n";
  const std::vector<double> seen = completions(text);
  const std::vector<double> expected{100, 10, 14, 18};
  ASSERT_EQ(seen.size(), expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_NEAR(seen[i], expected[i], 0.001);
  const Scenario scenario = parse_scenario(text).value();
  const auto simulation = Simulation::create(scenario, false).value();
  ASSERT_TRUE(simulation->run({}).ok());
  EXPECT_EQ(simulation->placed(), (std::vector<std::size_t>{0, 1, 1, 1}));
  EXPECT_NEAR(to_seconds(simulation->jobs()[3].waited()), 13, 0.001);
}

// The second needs more than is idle, and the third starts before it. When both devices of the
// second are idle it goes before the fourth, which came later.
TEST(Exclusive, ALaterJobStartsOnDevicesThatTheFirstInTheQueueCannotUse) {
  const std::vector<double> seen = completions(
      "device capacity=2GiB policy=exclusive devices=3 switch=0s\n"
      "job gpus=2 iteration=1s iterations=10 live=1MiB\n"
      "job gpus=2 iteration=1s iterations=10 live=1MiB\n"
      "job iteration=1s iterations=30 live=1MiB\n"
      "job at=1s iteration=1s iterations=5 live=1MiB\n");
  const std::vector<double> expected{10, 10, 20, 20, 30, 24};
  ASSERT_EQ(seen.size(), expected.size());  // a figure for each rank
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_NEAR(seen[i], expected[i], 0.001) << i;
}

TEST(Exclusive, AJobThatFitsNoDeviceKeepsNobodyWaiting) {
  const std::vector<double> seen = completions(
      "device capacity=1GiB policy=exclusive switch=0s\n"
      "job name=huge iteration=1s iterations=100 live=2GiB\n"
      "job name=small iteration=1s iterations=10 live=1MiB\n");
  EXPECT_NEAR(seen[1], 10, 0.001);
}

TEST(Bound, IsShortestRemainingWorkFirst) {
  // The second takes the device from the first, which ends at 14.
  EXPECT_NEAR(bound("device capacity=1GiB\n"
                    "job iteration=1s iterations=10 live=1MiB\n"
                    "job at=2s iteration=1s iterations=4 live=1MiB\n"),
              (14 + 4) / 2.0, 1e-9);
  // Two devices count as one of twice the speed, but no job is faster than alone.
  EXPECT_NEAR(bound("device capacity=1GiB devices=2\n"
                    "job iteration=1s iterations=10 live=1MiB\n"),
              10, 1e-9);
  // A gang has as much work as its ranks together: it has half of the first 5 s.
  EXPECT_NEAR(bound("device capacity=1GiB devices=2\n"
                    "job iteration=1s iterations=10 gpus=2 live=1MiB\n"
                    "job iteration=1s iterations=10 live=1MiB\n"),
              (5 + 15) / 2.0, 1e-9);
  // Half of the device is left for another job, where two may run.
  const std::string halves =
      "job iteration=1s iterations=10 utilisation=0.5 live=1MiB\n"
      "job iteration=1s iterations=10 utilisation=0.5 live=1MiB\n";
  EXPECT_NEAR(bound("device capacity=1GiB num_lanes=2 interference=1\n" + halves), 10, 1e-9);
  EXPECT_NEAR(bound("device capacity=1GiB\n" + halves), 15, 1e-9);
}

// Whatever the policy, lanes, gaps and gangs.
TEST(BoundProperty, NoScheduleIsBetter) {
  rc::check([] {
    const auto any = [](int least, int most) { return *rc::gen::inRange(least, most + 1); };
    const int devices = any(1, 3);
    std::string text = fmt::format(
        "device capacity=1GiB switch=0s policy={} devices={} num_lanes={} interference={}\n",
        *rc::gen::element<std::string>("fifo", "rr", "fair", "srtf", "pack", "exclusive"), devices,
        any(1, 3), *rc::gen::element<std::string>("0", "0.5", "1", "2"));
    for (int job = any(1, 6); job > 0; --job) {
      text += fmt::format(
          "job at={}s iteration={}ms gap={}ms iterations={} utilisation={} gpus={} live=1MiB\n",
          any(0, 20), any(50, 500), *rc::gen::element(0, 100), any(1, 60),
          *rc::gen::element<std::string>("0.3", "1"), any(1, devices));
    }
    RC_ASSERT(average_completion(text) >= bound(text) - 1e-6);
  });
}

// Whatever its number: it has failed, and others have waited meanwhile.
TEST(CentralQueue, AJobThatComesAgainIsBehindThoseThatWait) {
  CentralQueue queue({1, 1});
  queue.push(0, 1);
  EXPECT_EQ(queue.start()->job, 0U);
  queue.push(3, 2);
  EXPECT_FALSE(queue.start().has_value()) << "one device is idle";
  queue.push(0, 1);
  queue.note_idle(0);
  EXPECT_EQ(queue.start()->job, 3U);
}

}  // namespace
}  // namespace gpushare::sim
