// What a coordinator keeps of its jobs, by the way in which they, or it, end.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "csrc/daemon/files/account.h"
#include "csrc/wire/job_messages.h"

#include "tests/cpp/support/daemon_account_lines.h"
#include "tests/cpp/support/daemon_job.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::DaemonProcess;
using testing::JobProcess;
using testing::JobSide;
using testing::TempFolder;

class ServerAccounts : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<nlohmann::json> accounts() const {
    return testing::account_lines(folder_.path() + "/accounts/cpu@" + host_name() +
                                  ".000001.jsonl");
  }
  // Waits for them: they are written by a thread of the daemon.
  [[nodiscard]] std::vector<nlohmann::json> accounts(std::size_t num) const {
    EXPECT_TRUE(testing::eventually([&] { return accounts().size() >= num; }));
    return accounts();
  }
  JobProcess start_job(bool says_goodbye, std::uint32_t job = 1) {
    return JobProcess([socket = daemon_.socket(), says_goodbye, job](JobSide& side) {
      side.attach(socket, "mine");
      side.want();
      side.wait_granted();
      side.tell("there");
      side.wait_for("end");
      wire::Unregister goodbye;
      goodbye.of = {.job = JobId{job}, .device = "cpu"};
      if (says_goodbye) side.send(goodbye);
    });
  }

  const TempFolder folder_;
  DaemonProcess daemon_{folder_, {"--accounts-folder", folder_.path() + "/accounts"}};
};

TEST_F(ServerAccounts, AJobThatSaysGoodbyeHasEnded) {
  {
    JobProcess job = start_job(true);
    job.expect("there");
    job.tell("end");
    job.wait();
  }
  const auto kept = accounts(1);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept.front()["name"], "mine");
  EXPECT_EQ(kept.front()["job"], 1);
  EXPECT_EQ(kept.front()["end"], "ended");
  EXPECT_EQ(kept.front()["device"], "cpu");
  EXPECT_EQ(kept.front()["policy"], "fair");
  EXPECT_EQ(kept.front()["leases"], 1);
  EXPECT_LE(kept.front()["start_ns"], kept.front()["end_ns"]);
}

// What the page says while a lease is open counts for that lease, and no longer than it lasted.
TEST_F(ServerAccounts, HasTheFiguresOfThePageAndOfTheLeases) {
  {
    JobProcess job([socket = daemon_.socket()](JobSide& side) {
      side.attach(socket, "mine");
      for (const std::int64_t stall_ns : {std::int64_t{1}, seconds(1000).value()}) {
        side.want();
        side.wait_granted();
        side.page().stall_ns.store(stall_ns);
        side.page().iterations.store(7);
        side.page().spilled_total_bytes.store(4096);
        side.close_lease();
      }
    });
    EXPECT_EQ(job.wait(), 0);
  }
  const auto kept = accounts(1);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept.front()["leases"], 2);
  EXPECT_EQ(kept.front()["iterations"], 7);
  EXPECT_EQ(kept.front()["spilled_bytes"], 4096);
  EXPECT_GE(kept.front()["switching_ns"], 1);
  EXPECT_LE(kept.front()["switching_ns"], kept.front()["held_ns"]);
}

// Its new page says nothing yet, and what the old one said was true.
TEST_F(ServerAccounts, AJobThatRegisteredAnewKeepsItsFigures) {
  {
    JobProcess job([socket = daemon_.socket()](JobSide& side) {
      side.attach(socket, "mine");
      side.page().iterations.store(7);
      wire::Unregister goodbye;
      goodbye.of = {.job = JobId{1}, .device = "cpu"};
      side.send(goodbye);
      side.register_job("mine");
    });
    EXPECT_EQ(job.wait(), 0);
  }
  const auto kept = accounts(1);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept.front()["iterations"], 7);
  EXPECT_EQ(kept.front()["end"], "died") << "it had begun again";
}

TEST_F(ServerAccounts, AJobThatIsKilledHasDied) {
  JobProcess job = start_job(false);
  job.expect("there");
  job.kill();
  const auto kept = accounts(1);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept.front()["end"], "died");
}

TEST_F(ServerAccounts, AJobIsCarriedOnByTheNextCoordinatorUnderTheSameId) {
  JobProcess job = start_job(false);
  job.expect("there");
  daemon_.signal(SIGTERM);
  EXPECT_EQ(daemon_.wait(), 0);
  const auto kept = accounts(1);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept.front()["end"], "carried on");
  EXPECT_EQ(kept.front()["pid"], job.pid());
  EXPECT_TRUE(kept.front()["wait_status"].is_null());
  job.kill();
}

class ServerAccountsAfterAKill : public ServerAccounts {
 protected:
  void kill_daemon() {
    daemon_.signal(SIGKILL);
    EXPECT_EQ(daemon_.wait(), -1);
  }
  // It connects again once it is told to.
  JobProcess start_returning_job(bool has_more_iterations) {
    return JobProcess([socket = daemon_.socket(), has_more_iterations](JobSide& side) {
      side.attach(socket, "mine");
      side.tell("there");
      side.wait_for("reconnect");
      side.disconnect();
      side.connect(socket);
      side.hello(Bytes{0}, Term{0});
      if (has_more_iterations) side.register_job("mine");
      side.tell("is back");
      side.wait_for("end");
    });
  }
  const std::vector<std::string> options_{"--accounts-folder", folder_.path() + "/accounts"};
};

TEST_F(ServerAccountsAfterAKill, AJobThatEndedMeanwhileIsListedAsLost) {
  JobProcess job = start_job(false);
  job.expect("there");
  kill_daemon();
  job.kill();
  const DaemonProcess next(folder_, options_);
  const auto kept = accounts(1);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept.front()["name"], "mine");
  EXPECT_EQ(kept.front()["end"], "lost");
  EXPECT_EQ(kept.front()["job"], 1);
  EXPECT_LE(kept.front()["start_ns"], kept.front()["end_ns"]);
}

TEST_F(ServerAccountsAfterAKill, AJobThatEndsBeforeItComesBackIsListedAsLost) {
  JobProcess job = start_job(false);
  job.expect("there");
  kill_daemon();
  const DaemonProcess next(folder_, options_);
  job.kill();
  EXPECT_EQ(accounts(1).size(), 1U);
  EXPECT_EQ(accounts().front()["end"], "lost");
}

// It has no iterations to run any more, so it does not register anew, and yet it was a job.
TEST_F(ServerAccountsAfterAKill, AJobThatComesBackOnlyToEndIsListed) {
  JobProcess job = start_returning_job(false);
  job.expect("there");
  kill_daemon();
  const DaemonProcess next(folder_, options_);
  job.tell("reconnect");
  job.expect("is back");
  job.tell("end");
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(accounts(1).size(), 1U);
  EXPECT_EQ(accounts().front()["name"], "mine");
}

TEST_F(ServerAccountsAfterAKill, AJobThatGoesOnIsListedOnceInTheEnd) {
  JobProcess job = start_returning_job(true);
  job.expect("there");
  kill_daemon();
  {
    DaemonProcess next(folder_, options_);
    job.tell("reconnect");
    job.expect("is back");
    job.tell("end");
    EXPECT_EQ(job.wait(), 0);
    EXPECT_EQ(accounts(1).size(), 1U);
    EXPECT_EQ(accounts().front()["end"], "died");
    next.signal(SIGKILL);  // the state file may still have what is in the journal
    EXPECT_EQ(next.wait(), -1);
  }
  DaemonProcess last(folder_, options_);
  last.signal(SIGTERM);
  EXPECT_EQ(last.wait(), 0);
  EXPECT_EQ(accounts().size(), 1U);
}

TEST_F(ServerAccounts, AProcessThatHadNoIterationsToRunLeavesNone) {
  {
    JobProcess job([socket = daemon_.socket()](JobSide& side) {
      side.connect(socket);
      side.hello(Bytes{0}, Term{0});
    });
    job.wait();
  }
  {
    JobProcess job = start_job(true, 2);
    job.expect("there");
    job.tell("end");
    job.wait();
  }
  const auto kept = accounts(1);
  ASSERT_EQ(kept.size(), 1U) << "jobs are kept in the order in which they end";
  EXPECT_EQ(kept.front()["name"], "mine");
}

}  // namespace
}  // namespace gpushare::daemon
