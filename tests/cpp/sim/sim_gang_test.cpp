// Gangs on virtual time: jobs of several devices, in rows that the host's own class decides.
#include "csrc/sim/run/sim_gang.h"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/sim/report.h"
#include "csrc/sim/run/simulation.h"
#include "csrc/sim/simulator.h"

#include "tests/cpp/sim/plain_machine.h"

namespace gpushare::sim {
namespace {

using ::testing::HasSubstr;

struct GangRun {
  Scenario scenario;
  std::unique_ptr<Simulation> simulation;

  [[nodiscard]] double end(std::size_t job) const {
    return to_seconds(simulation->ranks_of(job).front().ended_at());
  }
  // The devices of a job's ranks.
  [[nodiscard]] std::vector<std::size_t> devices(std::size_t job) const {
    std::vector<std::size_t> all;
    for (const SimJob& rank : simulation->ranks_of(job))
      all.push_back(simulation->placed()[rank.id().value - 1]);
    return all;
  }
  [[nodiscard]] std::vector<LeaseRecord> leases_of(std::size_t job) const {
    std::vector<LeaseRecord> all;
    for (const LeaseRecord& lease : simulation->leases())
      if (lease.job == job) all.push_back(lease);
    return all;
  }
};

std::unique_ptr<GangRun> run_gangs(const std::string& device, const std::string& rows) {
  auto run = std::make_unique<GangRun>();
  auto scenario = parse_scenario("device " + device + "\n" + rows);
  EXPECT_TRUE(scenario.has_value()) << scenario.error().to_string();
  run->scenario = std::move(*scenario);
  auto simulation = Simulation::create(run->scenario, true);
  EXPECT_TRUE(simulation.has_value()) << simulation.error().to_string();
  run->simulation = std::move(*simulation);
  const Status status = run->simulation->run({});
  EXPECT_TRUE(status.ok()) << status.to_string();
  return run;
}

TEST(SimGang, AloneTakesExactlyItsTimeInOneLeaseADevice) {
  for (const char* policy : {"fair", "srtf", "exclusive"}) {
    const auto done = run_gangs(fmt::format("capacity=1GiB devices=4 switch=0s policy={}", policy),
                                "job gpus=3 iteration=100ms gap=10ms iterations=2000 live=1MiB\n");
    EXPECT_EQ(done->end(0), 2000 * 0.1 + 1999 * 0.01) << policy;
    EXPECT_EQ(done->simulation->leases().size(), 3U) << policy;
    EXPECT_EQ(done->devices(0), (std::vector<std::size_t>{0, 1, 2})) << policy;
  }
}

// Two ranks of a gang with 10 iterations of 100 ms, each on a machine of its own.
class TwoRanks : public ::testing::Test {
 protected:
  TwoRanks() {
    spec_.iteration = millis(100);
    spec_.iterations = 10;
    spec_.live = spec_.peak = mib(1);
    ranks_.reserve(2);
    for (std::uint64_t rank = 1; rank <= 2; ++rank)
      ranks_.emplace_back(JobId{rank}, spec_, false, 0, &gang_);
    gang_.set_ranks(ranks_);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      ranks_[rank].arrive(machines_.at(rank));
      ranks_[rank].on_message(wire::Welcome{});
      ranks_[rank].on_message(wire::Grant{.of = {}, .n = 1, .need_n = 1, .room = mib(1)});
      ranks_[rank].on_message(wire::Registered{});
      ranks_[rank].set_stop_at(10);
    }
  }
  // The rank is granted its lease, and is ready at once.
  void grant(std::size_t rank) {
    ranks_[rank].on_grant(Term{1});
    ranks_[rank].on_wake();
  }
  void set_time(Nanos now) { machines_[0].at = machines_[1].at = now; }
  [[nodiscard]] std::vector<std::uint64_t> steps_at(Nanos now) {
    set_time(now);
    for (SimJob& rank : ranks_)
      rank.settle();
    return {ranks_[0].iterations(), ranks_[1].iterations()};
  }

  JobSpec spec_;
  SimGang gang_{0, true};
  std::array<PlainMachine, 2> machines_;
  std::vector<SimJob> ranks_;
};

using Steps = std::vector<std::uint64_t>;

TEST_F(TwoRanks, BeginAStepWhenTheLastOfThemIsReady) {
  grant(0);
  EXPECT_EQ(steps_at(seconds(1)), (Steps{0, 0}));
  EXPECT_FALSE(ranks_[0].is_in_gap());
  grant(1);
  EXPECT_EQ(steps_at(millis(1250)), (Steps{2, 2}));
}

TEST_F(TwoRanks, EndAStepWithTheSlowest) {
  grant(0);
  grant(1);
  ranks_[1].slow(2);
  EXPECT_EQ(steps_at(millis(450)), (Steps{2, 2}));
}

// The first is asked, and the second may not begin the next step without it.
TEST_F(TwoRanks, WaitForOneThatEndsItsLease) {
  grant(0);
  grant(1);
  set_time(millis(150));
  ranks_[0].on_ask(Term{1});
  set_time(millis(200));
  ranks_[0].on_wake();
  EXPECT_TRUE(ranks_[0].is_waiting());
  EXPECT_TRUE(ranks_[1].has_lease());
  EXPECT_EQ(steps_at(seconds(5)), (Steps{2, 2}));
  ranks_[0].on_grant(Term{2});
  ranks_[0].on_wake();
  EXPECT_EQ(steps_at(millis(5350)), (Steps{5, 5}));
}

TEST_F(TwoRanks, EndTheirLeasesAtTheStepThatTheyWereTold) {
  for (SimJob& rank : ranks_)
    rank.set_stop_at(3);
  grant(0);
  grant(1);
  set_time(millis(300));
  ranks_[0].on_wake();  // and the other one acts with it
  EXPECT_TRUE(ranks_[0].is_waiting() && ranks_[1].is_waiting());
  EXPECT_EQ(steps_at(seconds(1)), (Steps{3, 3}));
}

TEST(SimGang, RowsOfTwoGangsAlternateAndNeverShareADevice) {
  const auto done = run_gangs("capacity=1GiB devices=2 switch=0s min_quantum=1s",
                              "job name=red gpus=2 iteration=100ms iterations=100 live=1MiB\n"
                              "job name=blue gpus=2 iteration=100ms iterations=100 live=1MiB\n");
  EXPECT_GT(done->leases_of(0).size(), 4U);
  EXPECT_NEAR(std::max(done->end(0), done->end(1)), 20, 0.5);
  EXPECT_NEAR(std::min(done->end(0), done->end(1)), 19, 1.5);
}

TEST(SimGang, AUserOfThreeTimesTheWeightHasThreeQuartersOfTheRows) {
  const auto done = run_gangs("capacity=1GiB devices=2 switch=0s min_quantum=1s",
                              "user name=ann weight=3\n"
                              "job user=ann gpus=2 iteration=100ms iterations=600 live=1MiB\n"
                              "job user=ben gpus=2 iteration=100ms iterations=600 live=1MiB\n");
  EXPECT_NEAR(done->end(0), 80, 2);
  EXPECT_NEAR(done->end(1), 120, 0.5);
}

TEST(SimGang, ARankThatIsRefusedRoomEndsTheWholeJob) {
  const auto done = run_gangs("capacity=1GiB devices=2 switch=0s",
                              "job name=huge gpus=2 iteration=1s iterations=10 live=2GiB\n"
                              "job name=small iteration=1s iterations=10 live=1MiB\n");
  for (const SimJob& rank : done->simulation->ranks_of(0))
    EXPECT_EQ(rank.outcome(), SimJob::Outcome::kDenied);
  EXPECT_EQ(done->end(1), 10);
  EXPECT_THAT(make_report(*done->simulation, {}), HasSubstr(R"("num_jobs":2,"num_finished":1)"));
}

TEST(SimGang, OneThatNeedsMoreDevicesThanThereAreIsRefusedInALine) {
  const auto report =
      run_scenario("device devices=2\njob name=big gpus=3 iteration=1s iterations=1");
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().message(), "job 'big' needs 3 devices, and there are 2");
}

TEST(SimGang, TheReportHasOneRowOfAGang) {
  const auto done = run_gangs("capacity=1GiB devices=2 switch=0s",
                              "job name=gang gpus=2 iteration=1s iterations=10 live=1MiB\n");
  const std::string report = make_report(*done->simulation, {});
  EXPECT_THAT(report, HasSubstr(R"("serial_seconds":20.000000,"utilisation":1.000000)"));
  EXPECT_THAT(report, HasSubstr(R"("num_jobs":1,"num_finished":1)"));
  EXPECT_THAT(report,
              HasSubstr(R"("name":"gang","user":"","device":0,"outcome":"finished","gpus":2,)"));
  EXPECT_THAT(report, HasSubstr(R"("bound_seconds":10.000000)"));
}

std::string any_gangs(int num_jobs, int num_devices) {
  std::string text;
  for (int i = 0; i < num_jobs; ++i) {
    const int peak = *rc::gen::inRange(1, 300);
    text += fmt::format(
        "job at={}ms gpus={} iteration={}ms gap={}ms iterations={} live={}MiB peak={}MiB\n",
        *rc::gen::inRange(0, 5000), *rc::gen::inRange(1, num_devices + 1),
        *rc::gen::inRange(1, 200), *rc::gen::inRange(0, 60), *rc::gen::inRange(1, 100),
        *rc::gen::inRange(0, peak + 1), peak);
  }
  return text;
}

std::string any_machine(int num_devices) {
  std::vector<std::string> policies = policy_names();
  policies.emplace_back(kExclusive);
  return fmt::format(
      "capacity=400MiB policy={} devices={} num_lanes={} min_quantum={}ms bandwidth=2GiB",
      *rc::gen::elementOf(policies), num_devices, *rc::gen::inRange(1, 3),
      *rc::gen::inRange(1, 400));
}

// Whatever the policy, with gangs and single jobs, and memory that does not hold all of them.
TEST(SimGangProperty, EveryJobEndsAndTheRanksOfAGangDoTheSame) {
  EXPECT_TRUE(rc::check("all jobs end, with as many iterations on all devices", [] {
    const int num_devices = *rc::gen::inRange(2, 5);
    const auto done =
        run_gangs(any_machine(num_devices), any_gangs(*rc::gen::inRange(1, 10), num_devices));
    for (std::size_t job = 0; job < done->scenario.jobs.size(); ++job) {
      const std::vector<std::size_t> devices = done->devices(job);
      RC_ASSERT(std::set<std::size_t>(devices.begin(), devices.end()).size() == devices.size());
      for (const SimJob& rank : done->simulation->ranks_of(job)) {
        RC_ASSERT(rank.outcome() == SimJob::Outcome::kFinished);
        RC_ASSERT(rank.iterations() == rank.spec().iterations);
        RC_ASSERT(to_seconds(rank.ended_at()) == done->end(job));
      }
    }
  }));
}

TEST(SimGangProperty, SaysTheSameTwice) {
  EXPECT_TRUE(rc::check("the same input gives the same report", [] {
    const std::string device = any_machine(3);
    const std::string jobs = any_gangs(*rc::gen::inRange(1, 10), 3);
    const Detail all{.jobs = true, .leases = true};
    RC_ASSERT(make_report(*run_gangs(device, jobs)->simulation, all) ==
              make_report(*run_gangs(device, jobs)->simulation, all));
  }));
}

// An event for each boundary of each rank, against boundaries that are only counted.
TEST(SimGangProperty, CountedBoundariesAreThoseOfEvents) {
  EXPECT_TRUE(rc::check("leases begin and end when they do step by step", [] {
    const std::string device = any_machine(3) + " gap_poll=10ms";
    const std::string jobs = any_gangs(*rc::gen::inRange(1, 6), 3);
    const Detail all{.jobs = true, .leases = true};
    RC_ASSERT(make_report(*run_gangs(device, jobs)->simulation, all) ==
              make_report(*run_gangs(device + " each_iteration=1", jobs)->simulation, all));
  }));
}

// With one lane: while a rank has its device nobody else has it.
TEST(SimGangProperty, ADeviceHasOneLeaseAtATime) {
  EXPECT_TRUE(rc::check("leases on a device do not overlap", [] {
    const auto done =
        run_gangs("capacity=400MiB policy=fair devices=3 min_quantum=200ms pack_lanes=1",
                  any_gangs(*rc::gen::inRange(1, 10), 3));
    std::map<std::size_t, Nanos> free_at;
    for (const LeaseRecord& lease : done->simulation->leases()) {
      RC_ASSERT(lease.from >= free_at[lease.device]);
      free_at[lease.device] = lease.to;
    }
  }));
}

}  // namespace
}  // namespace gpushare::sim
