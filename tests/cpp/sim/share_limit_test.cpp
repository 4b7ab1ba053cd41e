// Limits on the time, of users and of jobs: kept under every policy, and no tighter than they say.
#include <map>
#include <string>

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

// Elastic: all that nobody else wants, and no debt for it. A job's own makes way for its user's
// other jobs too.
TEST(ShareLimit, AnElasticOneBindsOnlyBesideOthers) {
  struct Case {
    const char *user, *job, *other;
  };
  for (const Case& one : {Case{"user name=alice share_limit=0.25 elastic=1\n", "", "bob"},
                          Case{"", " share_limit=0.25 elastic=1", "alice"}}) {
    for (const char* policy : {"fair", "rr", "fifo", "priority", "deadline"}) {
      const std::string text = fmt::format(kDevice, policy, 100, 100) + one.user +
                               job_line("a", "alice", std::string("iteration=20ms") + one.job) +
                               job_line("b", one.other, "at=40s iteration=10ms");
      EXPECT_GT(run(text, 0, 40).of_jobs.at("a"), 39) << policy << " " << one.other;
      Served served = run(text, 40, 100).of_jobs;
      EXPECT_LT(served["a"], 60 * 0.25 + 0.5) << policy << " " << one.other;
      EXPECT_GT(served["a"], 60 * 0.25 - 1) << policy << " " << one.other;
      EXPECT_GT(served["a"] + served["b"], 60 * 0.97) << policy << " " << one.other;
    }
  }
}

TEST(ShareLimit, AnElasticOneOfAJobIsWithinItsUsersHardOne) {
  const std::string text = fmt::format(kDevice, "fair", 100, 100) +
                           "user name=alice share_limit=0.3\n" +
                           job_line("a", "alice", "iteration=20ms share_limit=0.1 elastic=1");
  EXPECT_LT(run(text, 0, 100).of_users.at("alice"), 30.5);
  EXPECT_GT(run(text, 0, 100).of_users.at("alice"), 28.5);
}

// Its user is beyond his too, and so is the other job: that is not set back as far.
TEST(ShareLimit, AnElasticOneOfAJobBindsBesideOthersOfAnElasticUser) {
  for (const char* policy : {"fair", "rr", "fifo"}) {
    const std::string text = fmt::format(kDevice, policy, 100, 100) +
                             "user name=alice share_limit=0.1 elastic=1\n" +
                             job_line("a", "alice", "iteration=20ms share_limit=0.2 elastic=1") +
                             job_line("b", "alice", "iteration=10ms");
    Served served = run(text, 0, 100).of_jobs;
    EXPECT_LT(served["a"], 20 + 0.5) << policy;
    EXPECT_GT(served["a"] + served["b"], 97) << policy;
  }
}

// The other needs what this one has of their user's memory: it wants the time all the same.
TEST(ShareLimit, AnElasticOneOfAJobBindsBesideOthersThatLackItsRoom) {
  for (const char* policy : {"fair", "fifo"}) {
    const std::string text =
        fmt::format(kDevice, policy, 100, 100) + "user name=alice memory_limit=1GiB\n" +
        job_line("a", "alice", "iteration=20ms live=700MiB peak=800MiB share_limit=0.1 elastic=1") +
        job_line("b", "alice", "iteration=10ms live=700MiB peak=800MiB");
    Served served = run(text, 0, 100).of_jobs;
    EXPECT_LT(served["a"], 10 + 0.5) << policy;
    EXPECT_GT(served["b"], 80) << policy;
  }
}

// The lines of all lanes are one, and the two do not pay side by side.
TEST(ShareLimit, AnElasticOneBindsOnlyBesideOthersUnderPack) {
  for (const char* who : {"job", "user"}) {
    const bool is_users = who == std::string("user");
    std::string text =
        "device policy=pack capacity=4GiB switch=0s until=60s min_quantum=100ms num_lanes=2 "
        "interference=1\n";
    if (is_users) text += "user name=alice share_limit=0.1 elastic=1\n";
    text += job_line("a", "alice",
                     is_users ? "iteration=20ms" : "iteration=20ms share_limit=0.1 elastic=1");
    text += job_line("b", "bob", "iteration=10ms");
    Served served = run(text, 0, 60).of_jobs;
    EXPECT_LT(served["a"], 60 * 0.1 + 1.5) << who;
    EXPECT_GT(served["a"] + served["b"], 60 * 0.9) << who;
  }
}

// That it waits for its limit is no harm that opportunistic jobs do.
TEST(ShareLimit, OfAGuaranteedJobLeavesTheRestToHarvest) {
  for (const char* elastic : {"", " elastic=1"}) {
    const std::string text =
        fmt::format(kDevice, "priority", 60, 100) +
        job_line(
            "g", "alice",
            std::string("iteration=50ms gap=400ms priority=guaranteed share_limit=0.1") + elastic) +
        job_line("o", "bob", "iteration=20ms priority=opportunistic");
    Served served = run(text, 0, 60).of_jobs;
    EXPECT_GT(served["o"], 60 * 0.8) << elastic;
    EXPECT_GT(served["g"], 60 * 0.09) << elastic;
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
