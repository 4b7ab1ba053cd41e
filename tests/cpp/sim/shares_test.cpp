// Time is shared by user, then by job: whatever the users, their weights, how many jobs each has
// and how long their iterations are.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "csrc/base/check.h"
#include "csrc/sim/scenario.h"
#include "csrc/sim/simulation.h"

namespace gpushare::sim {
namespace {

constexpr double kAllowedError = 0.03;

// Seconds in leases, of those in [from, to].
using Served = std::map<std::string, double>;

struct Outcome {
  Served of_users, of_jobs;
};

Outcome run(const std::string& text, double from, double to) {
  const auto scenario = parse_scenario(text);
  GS_CHECK(scenario.has_value(), "{}", text);
  const auto simulation = Simulation::create(*scenario, true);
  GS_CHECK(simulation.has_value(), "{}", simulation.error().message());
  const Status status = (*simulation)->run({});
  GS_CHECK(status.ok(), "{}", status.message());
  Outcome outcome;
  for (const LeaseRecord& lease : (*simulation)->leases()) {
    const JobSpec& job = scenario->jobs.at(lease.job);
    const double time = std::min(to_seconds(lease.to), to) - std::max(to_seconds(lease.from), from);
    outcome.of_users[job.user] += std::max(time, 0.0);
    outcome.of_jobs[job.name] += std::max(time, 0.0);
  }
  return outcome;
}

// A job that never ends by itself.
std::string job_line(const std::string& name, const std::string& user, const std::string& rest) {
  return fmt::format("job name={} user={} iterations=10000000 {}\n", name, user, rest);
}

constexpr auto kDevice = "device policy={} capacity=4GiB switch=0s until={}s min_quantum={}ms\n";

struct AnyUser {
  double weight = 1;
  std::vector<double> jobs;  // their weights
};

// Enough turns for three percent cost seconds a case: a few cases, always the same.
TEST(Shares, AreTheUsersWeightsWithinThreePercent) {
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    std::mt19937 random(seed);
    const auto any = [&](int from, int to) {
      return from + static_cast<int>(random() % static_cast<std::uint32_t>(to - from));
    };
    std::string text =
        fmt::format(kDevice, seed % 2 == 0 ? "fair" : "priority", 500, any(150, 400));
    std::map<std::string, AnyUser> users;
    double sum = 0;
    const int num_users = any(2, 5);
    for (int u = 0; u < num_users; ++u) {
      const std::string name = fmt::format("u{}", u);
      AnyUser& user = users[name];
      user.weight = any(1, 4);
      sum += user.weight;
      text += fmt::format("user name={} weight={}\n", name, user.weight);
      const int num_jobs = any(1, 6);
      for (int j = 0; j < num_jobs; ++j) {
        user.jobs.push_back(any(1, 4));
        text += job_line(fmt::format("{}.{}", name, j), name,
                         fmt::format("weight={} iteration={}ms gap={}ms", user.jobs.back(),
                                     any(1, 200), any(0, 3)));
      }
    }
    SCOPED_TRACE(text);
    const Outcome outcome = run(text, 50, 500);
    double all = 0;
    for (const auto& [name, served] : outcome.of_users)
      all += served;
    EXPECT_GT(all, 450 * 0.9) << "the device is idle";
    for (const auto& [name, user] : users) {
      const double share = outcome.of_users.at(name) / all;
      EXPECT_NEAR(share / (user.weight / sum), 1, kAllowedError) << name;
    }
  }
}

TEST(Shares, TenJobsOfAUserHaveNoMoreThanOneOfAnother) {
  std::string text = fmt::format(kDevice, "fair", 600, 100);
  for (int i = 0; i < 10; ++i)
    text += job_line(fmt::format("sweep{}", i), "alice", "iteration=50ms");
  text += job_line("one", "bob", "iteration=20ms");
  const Outcome outcome = run(text, 0, 600);
  EXPECT_NEAR(outcome.of_users.at("alice"), 300, 9);
  EXPECT_NEAR(outcome.of_users.at("bob"), 300, 9);
  for (int i = 0; i < 10; ++i)
    EXPECT_NEAR(outcome.of_jobs.at(fmt::format("sweep{}", i)), 30, 2);
}

TEST(Shares, WithinAUserGoByTheJobsWeights) {
  const std::string text = fmt::format(kDevice, "fair", 600, 100) +
                           job_line("heavy", "alice", "iteration=50ms weight=9") +
                           job_line("light", "alice", "iteration=50ms weight=1") +
                           job_line("one", "bob", "iteration=20ms weight=1");
  const Outcome outcome = run(text, 0, 600);
  EXPECT_NEAR(outcome.of_users.at("alice"), 300, 9);
  EXPECT_NEAR(outcome.of_jobs.at("heavy"), 270, 9);
  EXPECT_NEAR(outcome.of_jobs.at("light"), 30, 3);
}

// Work conserving: what a user leaves idle goes to the others.
TEST(Shares, WhatAUserLeavesGoesToTheOthers) {
  const std::string text = fmt::format(kDevice, "fair", 600, 50) +
                           job_line("busy", "alice", "iteration=10ms") +
                           job_line("seldom", "bob", "iteration=100ms gap=900ms");
  const Outcome outcome = run(text, 0, 600);
  EXPECT_GT(outcome.of_users.at("alice"), 600 * 0.85);
  EXPECT_GT(outcome.of_users.at("alice") + outcome.of_users.at("bob"), 600 * 0.97);
}

// Who was away begins with what the others have: neither owed the time nor in debt.
TEST(Shares, AbsenceEarnsNothingAndLeavesNoDebt) {
  const std::string text = fmt::format(kDevice, "fair", 600, 100) +
                           job_line("a", "alice", "iteration=10ms") +
                           job_line("b", "alice", "at=300s iteration=10ms") +
                           job_line("c", "bob", "at=300s iteration=10ms");
  const Outcome early = run(text, 300, 320);
  EXPECT_NEAR(early.of_users.at("alice"), 10, 0.6);
  EXPECT_NEAR(early.of_users.at("bob"), 10, 0.6);
  EXPECT_NEAR(early.of_jobs.at("a"), 5, 0.6);
  EXPECT_NEAR(early.of_jobs.at("b"), 5, 0.6);
}

// Nor does time that he had alone, with a job that has ended.
TEST(Shares, AJobThatEndedAloneLeavesItsUserNoDebt) {
  const std::string text = fmt::format(kDevice, "fair", 400, 100) +
                           "job name=first user=alice iteration=10ms iterations=30000\n" +
                           job_line("other", "bob", "at=301s iteration=10ms") +
                           job_line("second", "alice", "at=302s iteration=10ms");
  const Outcome late = run(text, 302, 322);
  EXPECT_NEAR(late.of_jobs.at("second"), 10, 0.6);
  EXPECT_NEAR(late.of_users.at("bob"), 10, 0.6);
}

// A user whose jobs come and go, a few iterations each, has no more by that: each job begins with
// what his others have.
TEST(Shares, ManyShortJobsHaveNoMoreThanALongOne) {
  std::string text = fmt::format(kDevice, "fair", 75, 100) +
                     job_line("long", "bob", "iteration=10ms") +
                     job_line("root", "alice", "iteration=10ms");
  for (int i = 0; i < 250; ++i) {
    text +=
        fmt::format("job name=s{} user=alice at={}ms iteration=50ms iterations=4\n", i, i * 300);
  }
  const Outcome outcome = run(text, 0, 75);
  EXPECT_NEAR(outcome.of_users.at("alice"), 37.5, 1.2);
  EXPECT_NEAR(outcome.of_users.at("bob"), 37.5, 1.2);
}

// Hard: no more, though the device be idle; and all of it.
TEST(ShareLimit, IsKeptOnAnIdleDevice) {
  const std::string text =
      fmt::format(kDevice, "fair", 100, 100) + "user name=alice share_limit=0.3\n" +
      job_line("a", "alice", "iteration=20ms") + job_line("b", "alice", "iteration=10ms");
  const Outcome outcome = run(text, 0, 100);
  EXPECT_LT(outcome.of_users.at("alice"), 30.5);
  EXPECT_GT(outcome.of_users.at("alice"), 28.5);
  EXPECT_LT(run(text, 40, 50).of_users.at("alice"), 3.3 + 0.02);
}

TEST(ShareLimit, LeavesTheRestToOthers) {
  for (const char* policy : {"fair", "rr", "fifo", "priority", "deadline"}) {
    const std::string text =
        fmt::format(kDevice, policy, 60, 100) + "user name=alice share_limit=0.25\n" +
        job_line("a", "alice", "iteration=20ms") + job_line("b", "bob", "at=1s iteration=10ms");
    Served served = run(text, 5, 60).of_users;
    EXPECT_LT(served["alice"], 55 * 0.25 + 0.3) << policy;
    EXPECT_GT(served["alice"] + served["bob"], 55 * 0.97) << policy;
  }
}

// Of one job: what it leaves goes to the others of its user.
TEST(ShareLimit, OfAJobIsKeptByItAlone) {
  for (const char* policy : {"fair", "rr", "fifo", "priority", "deadline"}) {
    const std::string text = fmt::format(kDevice, policy, 60, 100) +
                             job_line("a", "alice", "iteration=20ms share_limit=0.25") +
                             job_line("b", "alice", "iteration=10ms");
    Served served = run(text, 5, 60).of_jobs;
    EXPECT_LT(served["a"], 55 * 0.25 + 0.3) << policy;
    EXPECT_GT(served["a"] + served["b"], 55 * 0.97) << policy;
  }
}

TEST(ShareLimit, OfAJobIsKeptOnAnIdleDevice) {
  const std::string text = fmt::format(kDevice, "fair", 100, 100) +
                           "user name=alice share_limit=0.6\n" +
                           job_line("a", "alice", "iteration=20ms share_limit=0.3");
  EXPECT_LT(run(text, 0, 100).of_users.at("alice"), 30.5);
  EXPECT_GT(run(text, 0, 100).of_users.at("alice"), 28.5);
}

// Elastic: all that nobody else wants, and no debt for it.
TEST(ShareLimit, AnElasticOneBindsOnlyBesideOthers) {
  for (const char* policy : {"fair", "rr", "fifo", "priority", "deadline"}) {
    const std::string text =
        fmt::format(kDevice, policy, 100, 100) + "user name=alice share_limit=0.25 elastic=1\n" +
        job_line("a", "alice", "iteration=20ms") + job_line("b", "bob", "at=40s iteration=10ms");
    EXPECT_GT(run(text, 0, 40).of_users.at("alice"), 39) << policy;
    Served served = run(text, 40, 100).of_users;
    EXPECT_LT(served["alice"], 60 * 0.25 + 0.5) << policy;
    EXPECT_GT(served["alice"], 60 * 0.25 - 1) << policy;
    EXPECT_GT(served["alice"] + served["bob"], 60 * 0.97) << policy;
  }
}

TEST(ShareLimit, TwoElasticUsersShareWhatBothWant) {
  const std::string text =
      fmt::format(kDevice, "fair", 60, 100) + "user name=alice share_limit=0.1 elastic=1\n" +
      "user name=bob share_limit=0.2 elastic=1\n" + job_line("a", "alice", "iteration=20ms") +
      job_line("b", "bob", "iteration=10ms");
  Served served = run(text, 0, 60).of_users;
  EXPECT_GT(served["alice"] + served["bob"], 60 * 0.97);
  EXPECT_GT(served["alice"], 60 * 0.1 - 1);
  EXPECT_GT(served["bob"], 60 * 0.2 - 1);
}

TEST(ShareLimit, JobsOfOneElasticUserTakeTurns) {
  for (const char* policy : {"fair", "rr"}) {
    const std::string text =
        fmt::format(kDevice, policy, 60, 100) + "user name=alice share_limit=0.1 elastic=1\n" +
        job_line("a", "alice", "iteration=20ms") + job_line("b", "alice", "iteration=10ms");
    Served served = run(text, 0, 60).of_jobs;
    EXPECT_NEAR(served["a"], 30, 2) << policy;
    EXPECT_NEAR(served["b"], 30, 2) << policy;
  }
}

// Two at a time, whoever came to wait in which lane.
TEST(Shares, UnderPackAreOfAllLanesTogether) {
  for (const int num_lanes : {2, 3}) {
    const std::string rest = "iteration=50ms utilisation=0.3";
    const std::string text = fmt::format(
        "device policy=pack capacity=4GiB switch=0s until=60s min_quantum=100ms interference=0 "
        "num_lanes={}\n{}{}{}{}{}{}{}",
        num_lanes, job_line("a1", "alice", rest), job_line("a2", "alice", rest),
        job_line("b1", "bob", rest), job_line("b2", "bob", rest), job_line("b3", "bob", rest),
        job_line("c1", "carol", rest), job_line("c2", "carol", rest));
    Outcome outcome = run(text, 0, 60);
    const double each = 60.0 * num_lanes / 3;
    for (const auto& [user, served] : outcome.of_users)
      EXPECT_NEAR(served, each, each * 0.1) << user << " in " << num_lanes;
    for (const auto& [job, served] : outcome.of_jobs) {
      const double share = each / (job[0] == 'b' ? 3 : 2);
      EXPECT_NEAR(served, share, share * 0.2) << job << " in " << num_lanes;
    }
  }
}

// Nobody's time goes to the job that came to wait in a lane of its own.
TEST(Shares, UnderPackTwoJobsOfAUserTakeTurnsInHis) {
  const std::string rest = "iteration=50ms utilisation=0.3";
  const std::string text =
      "device policy=pack capacity=4GiB switch=0s until=60s min_quantum=100ms interference=0 "
      "num_lanes=2\n" +
      job_line("a1", "alice", rest) + job_line("a2", "alice", rest) + job_line("b", "bob", rest) +
      job_line("c", "carol", rest);
  Outcome outcome = run(text, 0, 60);
  for (const auto& [user, served] : outcome.of_users)
    EXPECT_NEAR(served, 40, 4) << user;
  EXPECT_NEAR(outcome.of_jobs["a1"], outcome.of_jobs["a2"], 2);
}

// Its user has what is his by the other one, which runs beside everybody.
TEST(Shares, UnderPackAJobThatPaysBesideNobodyHasTurns) {
  // Without a cost of switching turns are as long as the heavy ones' iterations side by side.
  for (const char* change : {"28us", "0s"}) {
    const std::string heavy = "iteration=50ms utilisation=1";
    const std::string text = fmt::format(
        "device policy=pack capacity=4GiB switch={} until=120s min_quantum=100ms max_wait=2s "
        "interference=1 num_lanes=2\n{}{}{}",
        change, job_line("a1", "alice", "iteration=50ms utilisation=0.01"),
        job_line("a2", "alice", heavy), job_line("b", "bob", heavy));
    Served served = run(text, 0, 120).of_jobs;
    // A turn each three times max_wait at least; else nobody waits for those two.
    EXPECT_GT(served["a2"], 120.0 / 6 * 0.1) << change;
    EXPECT_GT(served["a1"], 100) << change;
    EXPECT_GT(served["b"], 100) << change;
  }
}

// Whoever runs beside them, and whether that pays or not.
TEST(ShareLimit, IsKeptUnderPack) {
  for (const char* interference : {"0", "2"}) {
    const std::string rest = "iteration=20ms utilisation=0.5";
    std::string text = fmt::format(
        "device policy=pack capacity=4GiB switch=0s until=60s min_quantum=100ms interference={}\n"
        "user name=alice share_limit=0.2\n{}{}",
        interference, job_line("a1", "alice", rest), job_line("a2", "alice", rest));
    EXPECT_LT(run(text, 0, 60).of_users.at("alice"), 60 * 0.2 + 0.3) << interference;
    text += job_line("b", "bob", rest) + job_line("c", "carol", rest);
    Served served = run(text, 0, 60).of_users;
    EXPECT_LT(served["alice"], 60 * 0.2 + 0.3) << interference;
    EXPECT_GT(served["alice"], 60 * 0.2 - 1) << interference;
    EXPECT_GT(served["bob"] + served["carol"], 60 * 0.75) << interference;
  }
}

// What a guaranteed job leaves, beyond the limit too.
TEST(ShareLimit, AnElasticOneIsNoneForWhoHarvestsAlone) {
  const std::string text = fmt::format(kDevice, "priority", 60, 100) +
                           "user name=alice share_limit=0.1 elastic=1\n" +
                           job_line("a", "alice", "iteration=10ms priority=opportunistic") +
                           job_line("b", "bob", "iteration=20ms gap=200ms priority=guaranteed");
  EXPECT_GT(run(text, 0, 60).of_users.at("alice"), 60 * 0.5);
}

// Of an elastic one too, where others want the time.
TEST(ShareLimit, AnIterationThatRunsOverIsPaidBack) {
  const std::string other = job_line("b", "bob", "iteration=10ms");
  const std::map<std::string, std::string> others_by_limit{{"share_limit=0.2", ""},
                                                           {"share_limit=0.2 elastic=1", other}};
  for (const auto& [limit, others] : others_by_limit) {
    const std::string text = fmt::format(kDevice, "fair", 200, 100) +
                             fmt::format("user name=alice {}\n", limit) +
                             job_line("a", "alice", "iteration=3s") + others;
    const Outcome outcome = run(text, 0, 200);
    EXPECT_LT(outcome.of_users.at("alice"), 43.5) << limit;
    EXPECT_GT(outcome.of_users.at("alice"), 37) << limit;
  }
}

}  // namespace
}  // namespace gpushare::sim
