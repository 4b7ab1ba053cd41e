// What happens to jobs beside their turns: devices of several speeds, failures, other devices.
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/sim/bound.h"
#include "csrc/sim/run/simulation.h"
#include "csrc/sim/simulator.h"

namespace gpushare::sim {
namespace {

using ::testing::HasSubstr;

struct FateRun {
  Scenario scenario;
  std::unique_ptr<Simulation> simulation;

  [[nodiscard]] const SimJob& job(std::size_t index) const {
    return simulation->ranks_of(index).front();
  }
  [[nodiscard]] std::size_t device_of(std::size_t index) const {
    return simulation->placed()[job(index).id().value - 1];
  }
};

std::unique_ptr<FateRun> run_fates(const std::string& device, const std::string& jobs) {
  auto done = std::make_unique<FateRun>();
  auto scenario = parse_scenario("device " + device + "\n" + jobs);
  EXPECT_TRUE(scenario.has_value()) << scenario.error().to_string();
  done->scenario = std::move(*scenario);
  EXPECT_TRUE(check_sums(done->scenario).ok());
  auto simulation = Simulation::create(done->scenario, true);
  EXPECT_TRUE(simulation.has_value()) << simulation.error().to_string();
  done->simulation = std::move(*simulation);
  const Status status = done->simulation->run({});
  EXPECT_TRUE(status.ok()) << status.to_string();
  return done;
}

std::string refusal(const std::string& device) {
  const auto parsed = parse_device(device);
  return parsed.has_value() ? "" : parsed.error().message();
}

// One of the coordinator's, or one without sharing.
std::string any_policy_or_none() {
  std::vector<std::string> policies = policy_names();
  policies.insert(policies.end(), {kExclusive, kMaxMin, kMaxMin});
  return *rc::gen::elementOf(policies);
}

TEST(Speeds, AnIterationTakesAsMuchLessTime) {
  const auto done =
      run_fates("speeds=4 switch=0s", "job iteration=100ms iterations=100 gap=10ms\n");
  EXPECT_EQ(done->job(0).ended_at(), millis(100 * 25 + 99 * 10));
}

TEST(Speeds, AnIterationTakesSomeTimeOnTheFastestDevice) {
  const auto done = run_fates("speeds=100", "job iteration=1ns iterations=100\n");
  EXPECT_EQ(done->job(0).outcome(), SimJob::Outcome::kFinished);
}

TEST(Speeds, TheSlowestRankDecides) {
  const auto done =
      run_fates("speeds=4,2 switch=0s", "job iteration=100ms iterations=100 gpus=2\n");
  EXPECT_EQ(done->job(0).ended_at(), millis(100 * 50));
}

TEST(Speeds, OneJobADeviceTakesTheFastestThatIsIdle) {
  const auto done =
      run_fates("policy=exclusive speeds=1,4,2",
                "job iteration=100ms iterations=100\njob iteration=100ms iterations=100\n");
  EXPECT_EQ(done->device_of(0), 1U);
  EXPECT_EQ(done->device_of(1), 2U);
}

TEST(Speeds, AFasterDeviceGetsMoreJobs) {
  std::string jobs;
  for (int i = 0; i < 5; ++i)
    jobs += "job iteration=100ms iterations=100\n";
  const auto done = run_fates("speeds=1,4", jobs);
  const auto& placed = done->simulation->placed();
  EXPECT_EQ(std::count(placed.begin(), placed.end(), 1U), 4);
}

TEST(Speeds, NoScheduleIsBetterThanTheBound) {
  EXPECT_TRUE(rc::check("the average is not below the bound", [] {
    std::string speeds;
    const int num_devices = *rc::gen::inRange(1, 4);
    for (int i = 0; i < num_devices; ++i) {
      speeds += fmt::format("{}{}:{}", i == 0 ? "" : ",", *rc::gen::elementOf(std::string("ab")),
                            *rc::gen::inRange(1, 40) / 10.0);
    }
    std::string jobs;
    for (int i = *rc::gen::inRange(1, 10); i > 0; --i)
      jobs += fmt::format("job at={}ms iteration={}ms gap={}ms iterations={} speeds=a:{}/b:{}\n",
                          *rc::gen::inRange(0, 5000), *rc::gen::inRange(1, 200),
                          *rc::gen::inRange(0, 50), *rc::gen::inRange(1, 100),
                          *rc::gen::inRange(1, 40) / 10.0, *rc::gen::inRange(1, 40) / 10.0);
    const auto done = run_fates(
        fmt::format("policy={} speeds={} num_lanes=1", any_policy_or_none(), speeds), jobs);
    double sum = 0;
    std::vector<const JobSpec*> specs;
    for (const SimJob& job : done->simulation->jobs()) {
      RC_ASSERT(job.outcome() == SimJob::Outcome::kFinished);
      sum += to_seconds(job.ended_at() - job.spec().arrival);
      specs.push_back(&job.spec());
    }
    const double bound = least_average_completion(done->scenario, specs);
    RC_ASSERT(sum / static_cast<double>(specs.size()) >= bound * (1 - 1e-6));
  }));
}

TEST(Failures, WhatWasNotSavedIsDoneAgain) {
  const auto done = run_fates("failure_every=20s restart=5s checkpoint=2s switch=0s",
                              "job iteration=100ms iterations=1000\n");
  const SimJob& job = done->job(0);
  EXPECT_EQ(job.outcome(), SimJob::Outcome::kFinished);
  EXPECT_EQ(job.iterations(), 1000U);
  ASSERT_GT(job.failures(), 1U);
  EXPECT_GT(job.lost(), Nanos{0});
  EXPECT_LT(job.lost(), seconds(2) * static_cast<std::int64_t>(job.failures()));
  EXPECT_EQ(job.busy(), seconds(100) + job.lost());
  EXPECT_EQ(job.ended_at(), job.busy() + seconds(5) * static_cast<std::int64_t>(job.failures()));
}

// It would take e^60 attempts.
TEST(Failures, AJobThatNeverGetsAnywhereEndsTheSimulation) {
  const auto ended = run_scenario(
      "device failure_every=1h restart=24h\njob iteration=1h iterations=6000 live=1MiB\n");
  ASSERT_FALSE(ended.has_value());
  EXPECT_EQ(ended.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(ended.error().message(), HasSubstr("Give jobs a checkpoint"));
}

TEST(Failures, AJobThatFailsWithoutEndEndsTheSimulationSoon) {
  const auto ended = run_scenario(
      "device failure_every=1ms restart=1ms most_events=0\n"
      "job name=poor iteration=100ms iterations=100 live=1MiB\n");
  ASSERT_FALSE(ended.has_value());
  EXPECT_THAT(ended.error().message(), HasSubstr("poor has failed 100000 times"));
}

// Its coordinator sees the process that was started again, and not the time of the one before.
TEST(Failures, IterationsThatAreDoneAgainMakeNoneLonger) {
  const auto done = run_fates("failure_every=30s checkpoint=25s until=200s",
                              "job iteration=100ms iterations=100000\n");
  ASSERT_GT(done->job(0).failures(), 2U);
  SimJob job = done->job(0);
  const wire::Usage usage = job.look();
  EXPECT_NEAR(to_seconds(usage.busy), static_cast<double>(usage.iterations) * 0.1, 0.2);
}

TEST(Failures, WithoutACheckpointAllIsLost) {
  const auto done =
      run_fates("failure_every=60s restart=1s", "job iteration=100ms iterations=300\n");
  const SimJob& job = done->job(0);
  EXPECT_EQ(job.busy(), seconds(30) + job.lost());
}

TEST(Failures, RanksOfAGangFailTogetherAndOthersRunMeanwhile) {
  const auto done =
      run_fates("devices=2 failure_every=40s restart=10s checkpoint=1s policy=fair",
                "job iteration=100ms iterations=500 gpus=2\n"
                "job iteration=100ms iterations=500\njob iteration=100ms iterations=500\n");
  const auto ranks = done->simulation->ranks_of(0);
  EXPECT_GT(ranks[0].failures(), 0U);
  EXPECT_EQ(ranks[0].failures(), ranks[1].failures());
  for (const SimJob& job : done->simulation->jobs())
    EXPECT_EQ(job.outcome(), SimJob::Outcome::kFinished);
}

TEST(Rebinding, AnIdleDeviceTakesAJobThatWaits) {
  const std::string jobs =
      "job name=long iteration=100ms iterations=1000 live=100MiB\n"
      "job name=short iteration=100ms iterations=10 live=100MiB\n"
      "job name=long iteration=100ms iterations=1000 live=100MiB\n"
      "job name=short iteration=100ms iterations=10 live=100MiB\n";
  const auto ends = [&](const std::string& rebind) {
    const auto done = run_fates("devices=2 policy=fair rebind=" + rebind, jobs);
    Nanos last;
    for (const SimJob& job : done->simulation->jobs())
      last = std::max(last, job.ended_at());
    return last;
  };
  EXPECT_GT(ends("never"), seconds(200));
  EXPECT_GT(ends("unbegun"), seconds(200)) << "all have begun by then";
  EXPECT_LT(ends("any"), seconds(110));
}

TEST(Rebinding, AJobThatHasNotBegunTakesNoMemoryAlong) {
  const auto done = run_fates("devices=2 policy=fifo rebind=unbegun",
                              "job iteration=100ms iterations=1000 live=100MiB\n"
                              "job iteration=100ms iterations=10 live=100MiB\n"
                              "job iteration=100ms iterations=10 live=100MiB\n");
  EXPECT_EQ(done->simulation->num_moves(), 1U);
  EXPECT_EQ(done->device_of(2), 1U);
  EXPECT_EQ(done->job(2).moved(), Bytes{0});
  EXPECT_LT(done->job(2).ended_at(), seconds(3));
}

TEST(Rebinding, AGangMovesAsAWhole) {
  const auto done = run_fates("devices=4 policy=fifo rebind=unbegun",
                              "job iteration=100ms iterations=1000 gpus=2\n"
                              "job iteration=100ms iterations=10 gpus=2\n"
                              "job iteration=100ms iterations=10 gpus=2\n");
  EXPECT_EQ(done->simulation->num_moves(), 1U);
  EXPECT_LT(done->job(2).ended_at(), seconds(3));
}

// A failure comes after so many iterations of the job, on whichever device they ran.
TEST(Rebinding, AMovePutsNoFailureOff) {
  const auto lost = [](const std::string& rebind) {
    const auto done = run_fates(
        "devices=2 policy=fair failure_every=30s checkpoint=5s restart=1s rebind=" + rebind,
        "job iteration=100ms iterations=600 live=10MiB\n"
        "job iteration=100ms iterations=10 live=10MiB\n"
        "job iteration=100ms iterations=600 live=10MiB\n"
        "job iteration=100ms iterations=10 live=10MiB\n");
    EXPECT_EQ(done->simulation->num_moves() > 0, rebind == "any");
    std::vector<Nanos> of_jobs;
    for (const SimJob& job : done->simulation->jobs())
      of_jobs.push_back(job.lost());
    return of_jobs;
  };
  EXPECT_THAT(lost("never"), ::testing::Contains(::testing::Gt(Nanos{})));
  EXPECT_EQ(lost("any"), lost("never"));
}

TEST(Rebinding, WhatDoesNotFitIntoTheHostTierStays) {
  const auto done = run_fates("devices=2 policy=fair rebind=any host_budget=50MiB capacity=400MiB",
                              "job iteration=100ms iterations=300 live=100MiB\n"
                              "job iteration=100ms iterations=10 live=100MiB\n"
                              "job iteration=100ms iterations=300 live=100MiB\n");
  EXPECT_EQ(done->simulation->num_moves(), 0U);
}

// Two devices become idle at one moment, while jobs of a third wait.
TEST(Rebinding, SeveralJobsMoveOneAfterTheOther) {
  std::string jobs = "job iteration=100ms iterations=20 gpus=2\n";
  for (int i = 0; i < 8; ++i)
    jobs += "job iteration=100ms iterations=200 live=150MiB peak=200MiB\n";
  for (const std::string policy : {"fair", "srtf", "pack", "fifo"}) {
    const auto done = run_fates(
        "devices=3 rebind=any capacity=320MiB bandwidth=1GiB min_quantum=100ms policy=" + policy,
        jobs);
    for (const SimJob& job : done->simulation->jobs())
      EXPECT_EQ(job.outcome(), SimJob::Outcome::kFinished) << policy;
  }
}

TEST(FatesProperty, EveryJobEndsWhateverHappens) {
  EXPECT_TRUE(rc::check("jobs finish, and do all their iterations", [] {
    std::string jobs;
    for (int i = *rc::gen::inRange(1, 8); i > 0; --i)
      jobs += fmt::format("job at={}ms iteration={}ms gap={}ms iterations={} live={}MiB gpus={}\n",
                          *rc::gen::inRange(0, 5000), *rc::gen::inRange(1, 200),
                          *rc::gen::inRange(0, 50), *rc::gen::inRange(1, 100),
                          *rc::gen::inRange(0, 300), *rc::gen::inRange(1, 3));
    const auto done = run_fates(
        fmt::format("policy={} devices={} capacity=400MiB min_quantum={}ms rebind={} "
                    "failure_every={}s restart={}ms checkpoint={}ms bandwidth=1GiB interference=0",
                    any_policy_or_none(), *rc::gen::inRange(2, 5), *rc::gen::inRange(1, 2000),
                    *rc::gen::element<std::string>("never", "unbegun", "any"),
                    *rc::gen::inRange(10, 60), *rc::gen::inRange(1, 2000),
                    *rc::gen::inRange(1, 2000)),
        jobs);
    for (const SimJob& job : done->simulation->jobs()) {
      RC_ASSERT(job.outcome() == SimJob::Outcome::kFinished);
      RC_ASSERT(job.iterations() == job.spec().iterations);
      RC_ASSERT(job.busy() ==
                job.spec().iteration * static_cast<std::int64_t>(job.iterations()) + job.lost());
    }
  }));
}

TEST(Fates, BadFieldsAreRefused) {
  EXPECT_THAT(refusal("devices=2 speeds=1"), HasSubstr("2 devices and 1 speeds"));
  EXPECT_THAT(refusal("speeds=a:1,:2"), HasSubstr("':2': a kind's name must be letters"));
  EXPECT_THAT(refusal("speeds=1,fast"), HasSubstr("'fast', allowed are 0.01 to 100"));
  EXPECT_THAT(refusal("policy=gavel"), HasSubstr("'gavel': use one of fifo"));
  EXPECT_THAT(refusal("policy=gavel"), HasSubstr("exclusive maxmin"));
  EXPECT_THAT(refusal("speeds="), HasSubstr("'', allowed"));
  EXPECT_THAT(refusal("speeds=1,"), HasSubstr("'', allowed"));
  EXPECT_THAT(refusal("speeds=0"), HasSubstr("'0', allowed"));
  EXPECT_THAT(refusal("rebind=always"), HasSubstr("never, unbegun or any"));
  EXPECT_THAT(refusal("restart=0s"), HasSubstr("more than 0s"));
}

}  // namespace
}  // namespace gpushare::sim
