// Time is shared by user, then by job: whatever the users, their weights, how many jobs each has
// and how long their iterations are.
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/sim_shares.h"

namespace gpushare::sim {
namespace {

using testing::job_line;
using testing::kDevice;
using testing::Outcome;
using testing::run;
using testing::Served;

constexpr double kAllowedError = 0.03;

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

// Of one user, whose memory_limit has room for no two: those in another lane make way.
TEST(Shares, OfJobsThatTheirUsersMemoryKeepsApart) {
  for (const char* policy : {"fair", "rr", "pack"}) {
    const std::string text =
        fmt::format(
            "device policy={} capacity=4GiB switch=0s until=300s min_quantum=100ms "
            "num_lanes=2 bandwidth=8GiB\nuser name=alice memory_limit=600MiB\n",
            policy) +
        job_line("a", "alice", "iteration=5ms live=207MiB peak=226MiB") +
        job_line("b", "alice", "iteration=100ms live=380MiB peak=532MiB") +
        job_line("c", "alice", "iteration=20ms live=346MiB peak=449MiB");
    const Outcome outcome = run(text, 0, 300);
    for (const char* job : {"a", "b", "c"})
      EXPECT_GT(outcome.of_jobs.at(job), 62) << policy << " " << job;
  }
}

// Two or three at a time, whoever came to wait in which lane. Pages are looked at as often as the
// daemon does: in step with iterations that are all as long, trials would begin and end with turns.
TEST(Shares, UnderPackAreOfAllLanesTogether) {
  for (const int num_lanes : {2, 3}) {
    const std::string rest = "iteration=50ms utilisation=0.3";
    const std::string text = fmt::format(
        "device policy=pack capacity=4GiB switch=0s until=60s min_quantum=100ms interference=0 "
        "gap_poll=10ms num_lanes={}\n{}{}{}{}{}{}{}",
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

}  // namespace
}  // namespace gpushare::sim
