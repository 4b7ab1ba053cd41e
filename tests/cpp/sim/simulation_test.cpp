#include "csrc/sim/run/simulation.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/sim/report.h"
#include "csrc/sim/simulator.h"

namespace gpushare::sim {
namespace {

using ::testing::HasSubstr;

struct Run {
  Scenario scenario;
  std::unique_ptr<Simulation> simulation;
};

// Jobs are rows of "submit_ms,iterations,iteration_ms,gap_ms,persistent_mib,peak_mib,weight".
std::unique_ptr<Run> run(const std::string& device, const std::string& rows) {
  auto run = std::make_unique<Run>();
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

std::string any_jobs(int num_jobs, int most_gap_ms) {
  std::string text;
  for (int i = 0; i < num_jobs; ++i) {
    const int peak = *rc::gen::inRange(1, 400);
    text += fmt::format(
        "job at={}ms iteration={}ms gap={}ms iterations={} live={}MiB peak={}MiB weight={}\n",
        *rc::gen::inRange(0, 5000), *rc::gen::inRange(1, 200),
        *rc::gen::inRange(0, most_gap_ms + 1), *rc::gen::inRange(1, 200),
        *rc::gen::inRange(0, peak + 1), peak, *rc::gen::inRange(1, 4));
  }
  return text;
}

std::string any_policy() { return *rc::gen::elementOf(policy_names()); }

TEST(SimulationProperty, NothingIsLostAndNothingOverlaps) {
  EXPECT_TRUE(rc::check("every job ends, served what it needs, one at a time on a device", [] {
    const int num_devices = *rc::gen::inRange(1, 4);
    const auto done =
        run(fmt::format("capacity=500MiB policy={} num_lanes=1 devices={} min_quantum={}ms "
                        "bandwidth=2GiB",
                        any_policy(), num_devices, *rc::gen::inRange(1, 400)),
            any_jobs(*rc::gen::inRange(1, 12), 80));
    const Simulation& simulation = *done->simulation;
    for (const SimJob& job : simulation.jobs()) {
      RC_ASSERT(job.outcome() == SimJob::Outcome::kFinished);
      RC_ASSERT(job.iterations() == job.spec().iterations);
      RC_ASSERT(job.busy() ==
                job.spec().iteration * static_cast<std::int64_t>(job.spec().iterations));
      RC_ASSERT(job.served() >= job.busy());
    }
    std::map<std::size_t, Nanos> free_at;
    for (const LeaseRecord& lease : simulation.leases()) {
      RC_ASSERT(lease.device == simulation.placed()[lease.job]);
      RC_ASSERT(lease.from >= free_at[lease.device]);
      RC_ASSERT(lease.to > lease.from);
      free_at[lease.device] = lease.to;
    }
  }));
}

TEST(SimulationProperty, SaysTheSameTwice) {
  EXPECT_TRUE(rc::check("the same input gives the same report", [] {
    const std::string device =
        fmt::format("capacity=500MiB policy={} devices=2 num_lanes={} bandwidth=2GiB until=100s",
                    any_policy(), *rc::gen::inRange(1, 4));
    const std::string jobs = any_jobs(*rc::gen::inRange(1, 12), 80);
    const Detail all{.jobs = true, .leases = true};
    RC_ASSERT(make_report(*run(device, jobs)->simulation, all) ==
              make_report(*run(device, jobs)->simulation, all));
  }));
}

// An event for each boundary, and looks as often as the daemon's, against boundaries that are only
// counted, and looks when there are news.
TEST(SimulationProperty, CountedBoundariesAreThoseOfEvents) {
  EXPECT_TRUE(rc::check("leases begin and end when they do step by step", [] {
    const std::string device = fmt::format("capacity=500MiB policy={} bandwidth=2GiB num_lanes={} ",
                                           any_policy(), *rc::gen::inRange(1, 3));
    const std::string jobs = any_jobs(*rc::gen::inRange(1, 6), 80);
    const Detail all{.jobs = true, .leases = true};
    const auto counted = run(device + "gap_poll=10ms", jobs);
    const auto stepped = run(device + "gap_poll=10ms each_iteration=1", jobs);
    RC_ASSERT(make_report(*counted->simulation, all) == make_report(*stepped->simulation, all));
  }));
}

double average_completion(const Simulation& simulation) {
  double sum = 0;
  for (const SimJob& job : simulation.jobs())
    sum += to_seconds(job.ended_at() - job.spec().arrival);
  return sum / static_cast<double>(simulation.jobs().size());
}

// Of a policy whose order does not change while a lease is open nothing is lost at all.
TEST(SimulationProperty, LooksAtNewsFindWhatPollingFinds) {
  EXPECT_TRUE(rc::check("with looks at news only, jobs end as with polling", [] {
    const std::string policy = *rc::gen::element<std::string>("fifo", "rr");
    const std::string device = fmt::format("capacity=4GiB policy={} ", policy);
    const std::string jobs = any_jobs(*rc::gen::inRange(1, 6), 0);
    const double polled = average_completion(*run(device + "gap_poll=10ms", jobs)->simulation);
    const double news = average_completion(*run(device, jobs)->simulation);
    RC_ASSERT(std::abs(news - polled) <= 1e-9 * polled);
  }));
}

TEST(Simulation, NeedsNoEventsForIterations) {
  const auto short_one = run("capacity=1GiB", "job iteration=10ms iterations=100 peak=10MiB\n");
  const auto long_one = run("capacity=1GiB", "job iteration=10ms iterations=1000000 peak=10MiB\n");
  EXPECT_EQ(long_one->simulation->world().num_steps, short_one->simulation->world().num_steps);
  EXPECT_EQ(long_one->simulation->jobs()[0].iterations(), 1'000'000U);
}

TEST(Simulation, SpreadsJobsOverDevices) {
  std::string jobs;
  for (int i = 0; i < 8; ++i)
    jobs += "job iteration=100ms iterations=100 live=10MiB peak=20MiB\n";
  const auto done = run("capacity=1GiB policy=fifo devices=4", jobs);
  std::map<std::size_t, int> num;
  for (const std::size_t device : done->simulation->placed())
    ++num[device];
  EXPECT_EQ(num.size(), 4U);
  for (const auto& [device, count] : num)
    EXPECT_EQ(count, 2) << device;
  EXPECT_NEAR(to_seconds(done->simulation->now()), 20, 0.01);
}

TEST(Simulation, AJobThatEndedLeavesItsDeviceToOthers) {
  const auto done = run("capacity=1GiB policy=fifo devices=2",
                        "job at=0s iteration=100ms iterations=100 peak=20MiB\n"
                        "job at=0s iteration=100ms iterations=10 peak=20MiB\n"
                        "job at=2s iteration=100ms iterations=10 peak=20MiB\n");
  EXPECT_EQ(done->simulation->placed(), (std::vector<std::size_t>{0, 1, 1}));
}

TEST(Simulation, FifoRunsOneJobAfterTheOther) {
  const auto done = run("capacity=1GiB policy=fifo switch=0s",
                        "job at=0s iteration=100ms iterations=100 peak=20MiB\n"
                        "job at=1s iteration=100ms iterations=10 peak=20MiB\n"
                        "job at=2s iteration=100ms iterations=20 peak=20MiB\n");
  const auto& jobs = done->simulation->jobs();
  EXPECT_EQ(jobs[0].ended_at(), seconds(10));
  EXPECT_EQ(jobs[1].ended_at(), seconds(11));
  EXPECT_EQ(jobs[2].ended_at(), seconds(13));
  EXPECT_EQ(done->simulation->num_switches(), 2U);
}

TEST(Simulation, JobsSideBySideSlowEachOther) {
  const std::string jobs =
      "job iteration=100ms iterations=100 live=10MiB peak=20MiB\n"
      "job iteration=100ms iterations=100 live=10MiB peak=20MiB\n";
  const auto ends = [&](const std::string& interference) {
    const auto done = run("capacity=1GiB num_lanes=2 switch=0s interference=" + interference, jobs);
    return to_seconds(done->simulation->now());
  };
  // Each takes its turn in a lane of its own from the moment that its sizes are known.
  EXPECT_LT(ends("0"), 12);
  EXPECT_NEAR(ends("0.5") / ends("0"), 1.5, 0.1);
  EXPECT_GT(ends("1"), 19);
}

TEST(Simulation, HowMuchJobsSlowEachOtherFollowsFromWhatTheyUse) {
  const auto ends = [](int num_jobs, double utilisation, double interference) {
    std::string jobs;
    for (int i = 0; i < num_jobs; ++i) {
      jobs += fmt::format("job iteration=100ms iterations=100 peak=20MiB utilisation={}\n",
                          utilisation);
    }
    const auto done = run(
        fmt::format("capacity=1GiB num_lanes={} switch=0s interference={}", num_jobs, interference),
        jobs);
    return to_seconds(done->simulation->now());
  };
  // In turns until their sizes are known: three iterations each.
  EXPECT_NEAR(ends(2, 0.4, 1), 10 * (1 + 0.4 * 0.4), 0.4);
  EXPECT_NEAR(ends(2, 0.4, 0.5), 10 * (1 + 0.5 * 0.4 * 0.4), 0.4);
  EXPECT_NEAR(ends(4, 0.5, 1), 20, 0.8) << "no more than there is of the device";
}

// With a trial of each set that can be, and what is learned of a job alone.
TEST(Simulation, PackGainsWhatIsLeftOfTheDeviceAndLosesLittleWhereNothingIs) {
  const auto makespan = [](const std::string& policy, double utilisation, double interference) {
    std::string jobs;
    for (int i = 0; i < 6; ++i) {
      jobs +=
          fmt::format("job iteration=50ms iterations=400 peak=20MiB utilisation={}\n", utilisation);
    }
    const auto done =
        run(fmt::format("capacity=1GiB policy={} switch=1ms interference={}", policy, interference),
            jobs);
    for (const SimJob& job : done->simulation->jobs())
      EXPECT_EQ(job.outcome(), SimJob::Outcome::kFinished);
    return to_seconds(done->simulation->now());
  };
  EXPECT_NEAR(makespan("fair", 0.3, 1), 120, 2);
  EXPECT_LT(makespan("pack", 0.3, 1), 60);
  EXPECT_LT(makespan("pack", 1, 1), 126) << "nothing to gain";
  EXPECT_LT(makespan("pack", 1, 2), 130) << "and much to lose";
}

// Jobs of 10 to 40 s that use half of the device: in pairs of the shortest ones first.
TEST(Simulation, SideBySideShortJobsGoFirstToo) {
  const auto average = [](const std::string& policy, const std::string& capacity) {
    std::string jobs;
    for (const int iterations : {400, 300, 200, 100})
      jobs += "job iteration=100ms live=200MiB peak=300MiB utilisation=0.5 iterations=" +
              std::to_string(iterations) + "\n";
    const auto done = run("interference=1 policy=" + policy + " capacity=" + capacity, jobs);
    Nanos sum;
    for (const SimJob& job : done->simulation->jobs()) {
      EXPECT_EQ(job.outcome(), SimJob::Outcome::kFinished);
      sum += job.ended_at();
    }
    return to_seconds(sum) / 4;
  };
  EXPECT_NEAR(average("srtf", "4GiB"), 50, 2);
  EXPECT_LT(average("srtf+pack", "4GiB"), 43);
  EXPECT_LT(average("srtf+pack", "4GiB"), average("pack", "4GiB"));
  // Not all four are in memory at a time, but two are.
  EXPECT_LT(average("srtf+pack", "700MiB"), 45);
}

// One that uses all of the device, beside many that share it: its part is what fair gives it.
TEST(Simulation, UnderPackNobodyStarves) {
  std::string jobs = "job name=large iteration=100ms iterations=100 peak=20MiB\n";
  for (int i = 0; i < 7; ++i)
    jobs += "job iteration=100ms iterations=100000 peak=20MiB utilisation=0.2\n";
  const auto done = run("capacity=1GiB policy=pack interference=2 until=200s", jobs);
  const SimJob& large = done->simulation->jobs().front();
  EXPECT_EQ(large.outcome(), SimJob::Outcome::kFinished);
  for (const SimJob& job : done->simulation->jobs())
    EXPECT_GT(job.iterations(), 99U);
}

// One hour-long job that would pay beside any of the short ones, each of which it would delay.
TEST(Simulation, ALongJobDoesNotRunBesideShortOnes) {
  std::string jobs = "job iteration=100ms iterations=36000 live=20MiB peak=30MiB utilisation=0.8\n";
  for (int i = 1; i <= 10; ++i)
    jobs += "job iteration=100ms iterations=200 live=20MiB peak=30MiB utilisation=0.8 at=" +
            std::to_string(i * 60) + "s\n";
  const auto done = run("interference=1 policy=srtf+pack capacity=1GiB until=700s", jobs);
  Nanos sum;
  for (std::size_t i = 1; i <= 10; ++i)
    sum += done->simulation->jobs()[i].ended_at() - seconds(static_cast<std::int64_t>(i) * 60);
  EXPECT_LT(to_seconds(sum) / 10, 25) << "20 s alone, 32 s beside the long one";
}

// The second job in order does not fit beside the first, and the third does.
TEST(Simulation, AJobThatFitsRunsBesideTheFirstInPlaceOfOneThatDoesNot) {
  const auto done =
      run("interference=1 policy=srtf+pack capacity=1000MiB",
          "job iteration=100ms iterations=300 live=500MiB peak=600MiB utilisation=0.5\n"
          "job iteration=100ms iterations=310 live=500MiB peak=600MiB utilisation=0.5\n"
          "job iteration=100ms iterations=320 live=50MiB peak=100MiB utilisation=0.5\n");
  const auto end = [&](std::size_t job) {
    return to_seconds(done->simulation->jobs()[job].ended_at());
  };
  EXPECT_LT(end(2), 45) << "it ran beside the first";
  EXPECT_LT(end(1), 75) << "one after the other it is 93";
}

// Jobs that do not fit all at a time stay in their lanes. If they were put into one lane in every
// step, holders elsewhere would make way for it all the time.
TEST(Simulation, JobsThatDoNotAllFitAreNotPutIntoOneLane) {
  std::string jobs;
  for (int i = 0; i < 12; ++i)
    jobs += "job iteration=100ms iterations=300 live=200MiB peak=300MiB utilisation=0.5\n";
  const auto done = run("interference=1 policy=srtf+pack capacity=700MiB", jobs);
  const std::string report = make_report(*done->simulation, {});
  const std::size_t at = report.find(R"("switches":)");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(std::stoi(report.substr(at + 11)), 30) << report;
}

// A wait of three times max_wait is no reason to run before shorter jobs.
TEST(Simulation, SideBySideALongWaitAloneChangesNoOrder) {
  const auto average = [](const std::string& policy) {
    std::string jobs;
    for (int i = 0; i < 30; ++i)
      jobs += "job live=20MiB peak=30MiB utilisation=0.8 iteration=100ms iterations=" +
              std::to_string(50 + 20 * i) + "\n";
    const auto done = run("interference=1 capacity=4GiB max_wait=1s policy=" + policy, jobs);
    Nanos sum;
    for (const SimJob& job : done->simulation->jobs())
      sum += job.ended_at();
    return to_seconds(sum) / 30;
  };
  EXPECT_LT(average("srtf+pack"), average("srtf") * 1.02);
}

TEST(Simulation, SideBySideAJobBelowABetterClassNeedNotBeOverdue) {
  std::string jobs = "job name=below iteration=100ms iterations=100 peak=30MiB at=10s\n";
  for (int i = 0; i < 4; ++i)
    jobs +=
        "job iteration=100ms iterations=100000 peak=30MiB priority=interactive utilisation=0.8\n";
  const auto done =
      run("interference=1 capacity=4GiB max_wait=1s policy=srtf+pack until=200s", jobs);
  EXPECT_EQ(done->simulation->jobs()[0].outcome(), SimJob::Outcome::kFinished)
      << "overdue only after 300 s";
  // All of them were timed once, and two of them run side by side.
  std::vector<std::uint64_t> iterations;
  for (const SimJob& job : done->simulation->jobs())
    iterations.push_back(job.iterations());
  std::sort(iterations.begin(), iterations.end());
  EXPECT_GT(iterations[3], 500U);
}

// Short jobs ask for 1.25 times what the device can do. The long one is overdue after 150 s, and
// has 5 % of the time from then on.
TEST(Simulation, UnderSrtfALongJobEndsThoughShortOnesNeverDo) {
  std::string jobs = "job name=long iteration=100ms iterations=50 peak=20MiB\n";
  for (int i = 0; i < 500; ++i)
    jobs += "job iteration=100ms iterations=8 peak=1MiB at=" + std::to_string(i * 640) + "ms\n";
  const auto end_of_long = [&](const std::string& class_floor) {
    const auto done = run("capacity=2GiB policy=srtf until=315s class_floor=" + class_floor, jobs);
    const SimJob& job = done->simulation->jobs().front();
    return job.outcome() == SimJob::Outcome::kFinished ? to_seconds(job.ended_at()) : 0;
  };
  EXPECT_EQ(end_of_long("0"), 0);
  EXPECT_NEAR(end_of_long("0.05"), 150 + 5 / 0.05, 30);
}

TEST(Simulation, ContextsLeaveLessForJobs) {
  const std::string jobs =
      "job iteration=100ms iterations=100 live=300MiB peak=300MiB\n"
      "job iteration=100ms iterations=100 live=300MiB peak=300MiB\n";
  const auto without = run("capacity=700MiB policy=rr", jobs);
  EXPECT_EQ(without->simulation->jobs()[0].moved(), Bytes{0});
  const auto with = run("capacity=700MiB policy=rr context=150MiB", jobs);
  EXPECT_GT(with->simulation->jobs()[0].moved(), Bytes{0});
  EXPECT_EQ(with->simulation->jobs()[0].outcome(), SimJob::Outcome::kFinished);
}

TEST(Simulation, CountsJobsThatAreLate) {
  const auto done = run("capacity=1GiB policy=fifo",
                        "job iteration=1s iterations=10 peak=20MiB due=11s\n"
                        "job iteration=1s iterations=10 peak=20MiB due=11s\n"
                        "job iteration=1s iterations=10 peak=20MiB due=12s\n"
                        "job iteration=1s iterations=10 peak=20MiB\n");
  EXPECT_THAT(make_report(*done->simulation, {}), HasSubstr(R"("num_late":2)"));
}

TEST(Simulation, StopsWhenAsked) {
  auto scenario = parse_scenario(
      "device capacity=1GiB policy=rr gap_poll=1ms\n"
      "job iteration=1s iterations=1000 peak=20MiB\n"
      "job iteration=1s iterations=1000 peak=20MiB\n");
  ASSERT_TRUE(scenario.has_value());
  auto simulation = Simulation::create(*scenario, false);
  ASSERT_TRUE(simulation.has_value());
  EXPECT_EQ((*simulation)->run([] { return false; }).code(), StatusCode::kCancelled);
}

TEST(Simulation, SaysThatItDoesNotEnd) {
  const auto report = run_scenario(
      "device capacity=1GiB policy=rr gap_poll=1ms most_events=1000\n"
      "job iteration=1s iterations=1000 peak=20MiB\n"
      "job iteration=1s iterations=1000 peak=20MiB\n");
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(report.error().message(), HasSubstr("0 of 2 jobs have"));
}

TEST(Simulation, RefusesWhatNoDeviceIs) {
  for (const char* const bad :
       {"devices=0", "devices=2000000", "duplex=2", "interference=-1", "bandwidth=0B",
        "num_lanes=99", "policy=none", "colour=red", "each_iteration=3"}) {
    const auto report = run_trace(bad, "submit_s,duration_s\n0,1\n", {});
    ASSERT_FALSE(report.has_value()) << bad;
    EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace gpushare::sim
