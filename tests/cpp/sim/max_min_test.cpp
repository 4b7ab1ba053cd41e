// Rounds in which the job that gets on worst is to get on as well as it can (policy=maxmin).
#include "csrc/sim/dispatch/max_min.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/sim/run/simulation.h"
#include "csrc/sim/scenario/scenario.h"

namespace gpushare::sim {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::Field;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

using Speeds = std::vector<std::vector<double>>;  // of each job, on each kind

// So many rounds; returns the work of each job in one, on average.
std::vector<double> rates_after(int rounds, MaxMin& max_min, const Speeds& speeds) {
  std::vector<double> work(speeds.size());
  std::map<std::size_t, std::size_t> has;
  for (int round = 0; round < rounds; ++round) {
    std::vector<MaxMin::Wish> wishes;
    for (std::size_t job = 0; job < speeds.size(); ++job) {
      max_min.set_done(job, work[job]);
      wishes.push_back({job, has.contains(job) ? std::optional(has.at(job)) : std::nullopt});
    }
    has = max_min.next(wishes);
    for (const auto& [job, kind] : has)
      work[job] += speeds[job][kind];
  }
  for (double& each : work)
    each /= rounds;
  return work;
}

MaxMin make(std::vector<std::size_t> nums, const Speeds& speeds) {
  MaxMin max_min(std::move(nums));
  for (std::size_t job = 0; job < speeds.size(); ++job)
    max_min.add(job, speeds[job], 1, 1);
  return max_min;
}

TEST(MaxMin, EachJobHasTheKindThatIsFastForIt) {
  const Speeds speeds{{4, 1, 1}, {1, 4, 1}, {1, 1, 4}};
  MaxMin max_min = make({1, 1, 1}, speeds);
  EXPECT_THAT(rates_after(100, max_min, speeds), Each(4));
}

TEST(MaxMin, JobsOfOneSortTakeTurns) {
  const Speeds speeds{{4, 1}, {4, 1}, {1, 4}, {1, 4}};
  MaxMin max_min = make({1, 1}, speeds);
  EXPECT_THAT(rates_after(1000, max_min, speeds), Each(DoubleNear(2, 0.02)));
}

// The linear program's solution is by hand. With x the part of the fast device that the second job
// has, and none for the slow one, the first has 1 - x of it and the rest of its time on the slow
// one. The least progress is greatest where all are equal.
TEST(MaxMin, ItIsTheSolutionOfTheLinearProgram) {
  const Speeds speeds{{1, 0.8}, {1, 0.1}};
  MaxMin max_min = make({1, 1}, speeds);
  const std::vector<double> rates = rates_after(2000, max_min, speeds);
  EXPECT_NEAR(rates[0] / 0.9, 1, 0.02);
  EXPECT_NEAR(rates[1] / 0.55, 1, 0.02);
}

TEST(MaxMin, AWeightIsAPartOfTheTime) {
  MaxMin max_min({1});
  max_min.add(0, {1}, 1, 3);
  max_min.add(1, {1}, 1, 1);
  const std::vector<double> rates = rates_after(1000, max_min, {{1}, {1}});
  EXPECT_NEAR(rates[0], 0.75, 0.01);
  EXPECT_NEAR(rates[1], 0.25, 0.01);
}

// The first job's weight makes it first on the fast kind, of which it has little.
TEST(MaxMin, JobsChangePlacesWhereThatIsWorthMore) {
  MaxMin max_min({1, 1});
  max_min.add(0, {1, 0.9}, 1, 0.5);
  max_min.add(1, {1, 0.1}, 1, 1);
  const std::map<std::size_t, std::size_t> given = max_min.next({{0, {}}, {1, {}}});
  EXPECT_EQ(given, (std::map<std::size_t, std::size_t>{{0, 1}, {1, 0}}));
}

TEST(MaxMin, WhoComesLateIsNotFirstForAsLongAsOthersHaveRun) {
  MaxMin max_min({1});
  max_min.add(0, {1}, 1, 1);
  max_min.set_done(0, 1000);
  max_min.add(1, {1}, 1, 1);
  max_min.set_done(1, 3);
  EXPECT_TRUE(max_min.next({{0, {}}, {1, {}}}).contains(0));
}

// Alone on its kind the first job gets on 1.6 times as well as the second.
TEST(MaxMin, WhoHasRunAheadOnIdleDevicesIsNotLastForAsLong) {
  MaxMin max_min({1, 1});
  max_min.add(0, {4, 1}, 1, 1);
  max_min.add(1, {1, 1}, 1, 1);
  max_min.set_done(0, 4000);
  max_min.set_done(1, 1000);
  max_min.add(2, {1, 1}, 1, 1);
  max_min.set_done(1, 1010);
  max_min.set_done(2, 10);
  EXPECT_TRUE(max_min.next({{0, {}}, {1, {}}, {2, {}}}).contains(0));
}

TEST(MaxMin, AHeavyJobIsFirstAtOnce) {
  MaxMin max_min({1});
  max_min.add(0, {1}, 1, 1);
  max_min.add(1, {1}, 1, 10);
  max_min.set_done(0, 1);
  EXPECT_TRUE(max_min.next({{0, 0}, {1, {}}}).contains(1));
}

TEST(MaxMin, JobsThatAreAlikeStayWhereTheyAre) {
  MaxMin max_min({1, 1});
  max_min.add(0, {1, 0.9}, 1, 1);
  max_min.add(1, {1, 0.9}, 1, 1);
  max_min.set_done(0, 0.1);
  const MaxMin::Given given = max_min.next({{0, 0}, {1, 1}});
  EXPECT_EQ(given, (MaxMin::Given{{0, 0}, {1, 1}}));
}

TEST(MaxMin, WhoCannotLeaveKeepsItsDevices) {
  MaxMin max_min({1, 1});
  max_min.add(0, {4, 0.1}, 1, 1);
  max_min.add(1, {1, 4}, 1, 1);
  const MaxMin::Given given = max_min.next({{.job = 0, .kind = 1, .is_fixed = true}, {1, 0}});
  EXPECT_EQ(given, (MaxMin::Given{{0, 1}, {1, 0}}));
}

TEST(MaxMin, AGangGoesBeforeSingleJobsThatAreWorthAsMuch) {
  MaxMin max_min({2});
  max_min.add(0, {1}, 1, 1);
  max_min.add(1, {1}, 1, 1);
  max_min.add(2, {1}, 2, 1);
  EXPECT_EQ(max_min.next({{0, {}}, {1, {}}, {2, {}}}), (MaxMin::Given{{2, 0}}));
  EXPECT_EQ(max_min.first({0, 1, 2}, {2})->first, 2U);
}

// An equal part of two devices for three jobs: a gang runs for a third of the time, and the single
// jobs for the rest.
TEST(MaxMin, AGangOfTwoHasHalfAsMuchTimeAsASingleJob) {
  MaxMin max_min({2});
  max_min.add(0, {1}, 2, 1);
  max_min.add(1, {1}, 1, 1);
  max_min.add(2, {1}, 1, 1);
  const std::vector<double> rates = rates_after(3000, max_min, {{1}, {1}, {1}});
  EXPECT_NEAR(rates[0], 1.0 / 3, 0.02);
  EXPECT_NEAR(rates[1], 2.0 / 3, 0.02);
}

TEST(MaxMin, AFailureMakesNobodyFirst) {
  MaxMin max_min({1});
  max_min.add(0, {1}, 1, 1);
  max_min.add(1, {1}, 1, 1);
  max_min.set_done(0, 10);
  max_min.set_done(0, 0);
  max_min.set_done(1, 5);
  EXPECT_TRUE(max_min.next({{0, {}}, {1, {}}}).contains(1));
}

std::unique_ptr<Simulation> simulate(const Scenario& scenario) {
  EXPECT_TRUE(check_sums(scenario).ok());
  auto simulation = std::move(Simulation::create(scenario, true).value());
  const Status status = simulation->run({});
  EXPECT_TRUE(status.ok()) << status.to_string();
  return simulation;
}

Scenario rounds_of(const std::string& device, const std::string& jobs) {
  const bool has_quantum = device.find("min_quantum") != std::string::npos;
  auto scenario = parse_scenario("device policy=maxmin switch=0s " + device +
                                 (has_quantum ? "\n" : " min_quantum=10s\n") + jobs);
  EXPECT_TRUE(scenario.has_value()) << scenario.error().to_string();
  return std::move(*scenario);
}

TEST(MaxMinRounds, TwoJobsTakeTurnsOnOneDevice) {
  const Scenario scenario = rounds_of(
      "", "job iteration=1s iterations=100 live=0B\njob iteration=1s iterations=100 live=0B\n");
  const auto simulation = simulate(scenario);
  for (const SimJob& job : simulation->jobs())
    EXPECT_GT(job.ended_at(), seconds(185));
  EXPECT_GE(simulation->num_moves(), 8U);
}

TEST(MaxMinRounds, AJobRunsAtItsOwnSpeedOfAKind) {
  const Scenario scenario = rounds_of("speeds=a:1,b:1",
                                      "job iteration=1s iterations=100 speeds=a:4/b:1\n"
                                      "job iteration=1s iterations=100 speeds=a:1/b:4\n");
  const auto simulation = simulate(scenario);
  EXPECT_EQ(simulation->jobs()[0].ended_at(), seconds(25));
  EXPECT_EQ(simulation->jobs()[1].ended_at(), seconds(25));
  EXPECT_EQ(simulation->num_moves(), 0U);
}

// They are put on the wrong devices at first, since the first takes what is fastest for it, and
// change when the first round is over.
TEST(MaxMinRounds, JobsChangeTheirDevicesWithTheirMemory) {
  const Scenario scenario =
      rounds_of("speeds=a:1,b:1 bandwidth=1GiB capacity=4GiB",
                "job iteration=1s iterations=100 live=1GiB speeds=a:2/b:1.9\n"
                "job at=1s iteration=1s iterations=100 live=1GiB speeds=a:2/b:0.2\n");
  const auto simulation = simulate(scenario);
  const SimJob& first = simulation->jobs()[0];
  const SimJob& second = simulation->jobs()[1];
  EXPECT_EQ(first.outcome(), SimJob::Outcome::kFinished);
  EXPECT_GT(first.moved(), gib(1));
  EXPECT_GT(second.moved(), gib(1));
  EXPECT_LT(second.ended_at(), seconds(300));  // 500 s on the slow device
}

TEST(MaxMinRounds, AGangHasDevicesOfOneKind) {
  const Scenario scenario = rounds_of("speeds=a:1,a:1,b:1",
                                      "job iteration=1s iterations=50 gpus=2 live=1MiB\n"
                                      "job iteration=1s iterations=100 live=1MiB\n"
                                      "job iteration=1s iterations=100 live=1MiB\n");
  const auto simulation = simulate(scenario);
  for (const SimJob& job : simulation->jobs())
    EXPECT_EQ(job.outcome(), SimJob::Outcome::kFinished);
  for (const LeaseRecord& lease : simulation->leases())
    EXPECT_TRUE(lease.job != 0 || lease.device < 2);
  EXPECT_GT(simulation->num_moves(), 0U);
}

TEST(MaxMinRounds, AGangThatIsLargerThanAnyKindIsRefused) {
  const Scenario scenario =
      rounds_of("speeds=a:1,b:1", "job iteration=1s iterations=50 gpus=2 live=0B\n");
  EXPECT_THAT(check_sums(scenario).message(),
              HasSubstr("'job1' needs 2 devices of one kind, and there is 1"));
}

TEST(MaxMinRounds, FailuresAndMovesAtOnce) {
  std::string jobs;
  for (int job = 0; job < 6; ++job)
    jobs +=
        "job at=3s iteration=1s iterations=200 live=100MiB gpus=" + std::to_string(1 + job % 2) +
        "\n";
  const Scenario scenario =
      rounds_of("devices=2 failure_every=50s restart=5s checkpoint=5s bandwidth=1GiB", jobs);
  const auto simulation = simulate(scenario);
  std::size_t num_failures = 0;
  for (const SimJob& job : simulation->jobs()) {
    EXPECT_EQ(job.outcome(), SimJob::Outcome::kFinished);
    EXPECT_EQ(job.iterations(), 200U);
    num_failures += job.failures();
  }
  EXPECT_GT(num_failures, 6U);
  EXPECT_GT(simulation->num_moves(), 6U);
}

TEST(MaxMinRounds, WhatDoesNotFitIntoTheHostTierStays) {
  const Scenario scenario = rounds_of("host_budget=1MiB capacity=4GiB",
                                      "job iteration=1s iterations=100 live=1GiB\n"
                                      "job at=1s iteration=1s iterations=100 live=1GiB\n");
  const auto simulation = simulate(scenario);
  EXPECT_EQ(simulation->jobs()[0].ended_at(), seconds(100));
  EXPECT_EQ(simulation->num_moves(), 0U);
}

// Single jobs come for as long as the gang waits.
TEST(MaxMinRounds, AGangDoesNotStarveBesideSingleJobs) {
  std::string jobs = "job gpus=8 at=1s iteration=1s iterations=10 live=0B\n";
  for (int at = 0; at < 2000; at += 40)
    jobs += "job at=" + std::to_string(at) + "s iteration=1s iterations=50 live=0B\n";
  const Scenario scenario = rounds_of("devices=8", jobs);
  EXPECT_LT(simulate(scenario)->ranks_of(0).front().ended_at(), seconds(100));
}

TEST(MaxMinRounds, AJobThatCannotMoveKeepsNoDeviceFromOthers) {
  const Scenario scenario =
      rounds_of("speeds=a:1,b:1 host_budget=1MiB capacity=4GiB",
                "job iteration=1s iterations=30 live=0B\n"
                "job at=1s iteration=1s iterations=1000 live=1GiB speeds=a:4/b:0.1\n");
  EXPECT_EQ(simulate(scenario)->jobs()[0].ended_at(), seconds(30));
}

// Copying the first job's memory takes 15 s, longer than a round. What it is given meanwhile stays
// free for it, though the third job waits.
TEST(MaxMinRounds, ADeviceIsKeptForAJobWhoseMemoryIsOnItsWay) {
  const Scenario scenario =
      rounds_of("speeds=a:1,b:1 bandwidth=1GiB capacity=40GiB",
                "job name=brief iteration=2s iterations=1 live=0B speeds=a:0.1/b:1\n"
                "job at=1s iteration=100ms iterations=1000 live=15GiB speeds=a:1/b:8\n"
                "job at=3s iteration=1s iterations=200 live=0B\n"
                "job at=5s iteration=1s iterations=200 live=0B\n");
  const auto simulation = simulate(scenario);
  EXPECT_LT(simulation->jobs()[1].ended_at(), seconds(55));
}

// At 100 s the second job is to go to device b, from which the third one leaves. It ends in place
// of that, so the third one has b again at once, and not in the next round.
TEST(MaxMinRounds, NoDeviceIsKeptForAJobThatHasEnded) {
  const Scenario scenario =
      rounds_of("speeds=a:1,b:1 min_quantum=100s",
                "job iteration=10s iterations=1 live=0B speeds=a:0.1/b:1\n"
                "job at=1s iteration=100s iterations=1 live=0B speeds=a:1/b:4\n"
                "job at=11s iteration=1s iterations=500 live=0B speeds=a:4/b:1\n"
                "job at=50s iteration=1s iterations=10 live=0B\n");
  const auto simulation = simulate(scenario);
  EXPECT_THAT(
      simulation->leases(),
      Contains(AllOf(Field(&LeaseRecord::job, 2U),
                     Field(&LeaseRecord::from, AllOf(Gt(seconds(100)), Lt(seconds(110)))))));
}

// A limit on a share would part the ranks: each device counts for itself.
TEST(MaxMinRounds, NoLimitOnASharePartsAGang) {
  for (const std::string policy : {kExclusive, kMaxMin}) {
    auto scenario = parse_scenario("device policy=" + policy +
                                   " min_quantum=10s devices=2\n"
                                   "user name=u share_limit=0.1\n"
                                   "job user=u iteration=10s iterations=1 live=0B\n"
                                   "job at=11s user=u gpus=2 iteration=1s iterations=10 live=0B\n"
                                   "job at=12s iteration=1s iterations=100 share_limit=0.5\n");
    ASSERT_TRUE(scenario.has_value());
    EXPECT_LT(simulate(*scenario)->now(), seconds(200)) << policy;
  }
}

TEST(MaxMinRounds, ASlowKindCountsInTheLongestTimeWhereItIsThere) {
  const std::string job = "job iteration=100s iterations=1000000 live=0B speeds=a:1/b:0.01\n";
  EXPECT_TRUE(check_sums(rounds_of("speeds=a:1", job)).ok());
  EXPECT_THAT(check_sums(rounds_of("speeds=a:1,b:1", job)).message(), HasSubstr("1e+10 s"));
}

TEST(MaxMinRounds, WhatCannotBeSimulatedIsRefused) {
  const std::string job = "job iteration=1s iterations=1 live=0B speeds=v100:2\n";
  EXPECT_THAT(check_sums(rounds_of("min_quantum=0s", job)).message(),
              HasSubstr("must be more than 0s"));
  EXPECT_THAT(check_sums(rounds_of("speeds=V100:2", job)).message(),
              HasSubstr("'job1' has a speed on 'v100', and no device is of a kind that it names"));
}

}  // namespace
}  // namespace gpushare::sim
