// How a daemon ends, and what the next one knows.
#include <csignal>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/daemon/files/instance_lock.h"
#include "csrc/daemon/files/state_file.h"
#include "csrc/wire/lease_page.h"
#include "csrc/wire/messages.h"

#include "tests/cpp/support/daemon_job.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::DaemonProcess;
using testing::JobProcess;
using testing::JobSide;
using testing::StatusClient;
using testing::TempFolder;

bool exists(const std::string& path) { return std::filesystem::exists(path); }

JobProcess make_idle_job(const std::string& socket) {
  return JobProcess([socket](JobSide& side) {
    side.attach(socket, "idle");
    side.tell("there");
    side.wait_for("end");
  });
}

TEST(ServerLife, EndsCleanlyOnSigterm) {
  const TempFolder folder;
  DaemonProcess daemon(folder);
  EXPECT_TRUE(exists(state_path(daemon.socket())));
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0);
  EXPECT_FALSE(exists(daemon.socket()));
  EXPECT_FALSE(exists(state_path(daemon.socket())));
  EXPECT_TRUE(exists(lock_path(daemon.socket())));  // never removed: it is the lock's name
}

TEST(ServerLife, EndsOnceTheLastJobIsGoneForLongEnough) {
  const TempFolder folder;
  DaemonProcess daemon(folder, {"--linger-s", "0"});
  {
    JobProcess job = make_idle_job(daemon.socket());
    job.expect("there");
  }
  EXPECT_EQ(daemon.wait(), 0);
  EXPECT_FALSE(exists(daemon.socket()));
}

TEST(ServerLife, AStatusConnectionDoesNotKeepIt) {
  const TempFolder folder;
  DaemonProcess daemon(folder, {"--linger-s", "0"});
  StatusClient watcher(daemon.socket());
  watcher.ask(wire::StatusRequest{});
  {
    JobProcess job = make_idle_job(daemon.socket());
    job.expect("there");
  }
  EXPECT_EQ(daemon.wait(), 0);
  EXPECT_TRUE(watcher.is_at_end());
}

TEST(ServerLife, ALimitIsSetFromOutsideOrRefusedInWords) {
  const TempFolder folder;
  DaemonProcess daemon(folder);
  JobProcess job = make_idle_job(daemon.socket());
  job.expect("there");
  wire::Set limit;
  limit.job = JobId{1};
  limit.changes.memory_limit = mib(300);
  StatusClient client(daemon.socket());
  const auto answer = client.ask(limit);
  ASSERT_TRUE(std::holds_alternative<wire::StatusReport>(answer));
  EXPECT_THAT(std::get<wire::StatusReport>(answer).report,
              ::testing::HasSubstr("\"memory_limit_bytes\":314572800"));
  limit.job = JobId{9};
  const auto refused = client.ask(limit);
  ASSERT_TRUE(std::holds_alternative<wire::Refused>(refused));
  EXPECT_THAT(std::get<wire::Refused>(refused).reason, ::testing::HasSubstr("no job 9"));
  job.tell("end");
}

TEST(ServerLife, StopEndsAnUnusedDaemon) {
  const TempFolder folder;
  DaemonProcess daemon(folder);
  StatusClient client(daemon.socket());
  EXPECT_TRUE(std::holds_alternative<wire::StatusReport>(client.ask(wire::Stop{})));
  EXPECT_EQ(daemon.wait(), 0);
}

TEST(ServerLife, StopIsRefusedWhileJobsAreConnectedUnlessForced) {
  const TempFolder folder;
  DaemonProcess daemon(folder);
  JobProcess job = make_idle_job(daemon.socket());
  job.expect("there");
  StatusClient polite(daemon.socket());
  const auto answer = polite.ask(wire::Stop{});
  ASSERT_TRUE(std::holds_alternative<wire::Refused>(answer));
  EXPECT_NE(std::get<wire::Refused>(answer).reason.find("1 job"), std::string::npos);
  EXPECT_EQ(testing::job_row(daemon.socket(), 1)["name"], "idle");
  StatusClient rude(daemon.socket());
  EXPECT_TRUE(std::holds_alternative<wire::StatusReport>(rude.ask(wire::Stop{.force = true})));
  EXPECT_EQ(daemon.wait(), 0);
  // The job lives: the next coordinator has to know of it.
  const auto state = read_state_file(state_path(daemon.socket()));
  ASSERT_TRUE(state.has_value() && state->has_value());
  ASSERT_EQ((*state)->jobs.size(), 1U);
  EXPECT_EQ((*state)->jobs.front().pid, job.pid());
}

TEST(ServerLife, ASecondInstanceIsRefused) {
  const TempFolder folder;
  const DaemonProcess daemon(folder);
  const auto second = testing::run_gpushared({"--socket", daemon.socket()});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.error_text.find("another coordinator holds"), std::string::npos)
      << second.error_text;
}

TEST(ServerLife, ReplacesTheSocketOfAKilledDaemon) {
  const TempFolder folder;
  std::uint64_t epoch = 0;
  {
    DaemonProcess daemon(folder);
    epoch = testing::status_of(daemon.socket())["coordinator"]["epoch"];
    daemon.signal(SIGKILL);
    EXPECT_EQ(daemon.wait(), -1);
    EXPECT_TRUE(exists(daemon.socket()));
  }
  const DaemonProcess next(folder);
  EXPECT_EQ(testing::status_of(next.socket())["coordinator"]["epoch"], epoch + 1);
}

// The holder of a lease goes on while there is no coordinator; the next one must grant to nobody
// until it has said what it holds.
TEST(ServerLife, AfterACrashTheHolderKeepsItsLease) {
  const TempFolder folder;
  const std::string socket = folder.path() + "/sock";
  auto first = std::make_unique<DaemonProcess>(folder);
  JobProcess holder([&](JobSide& side) {
    side.attach(socket, "holder");
    side.want();
    const Term held = side.wait_granted();
    side.tell("has it");
    side.wait_for("reconnect");
    side.disconnect();
    side.connect(socket);
    side.hello(mib(4), held);
    side.register_job("holder");
    side.tell("is back");
    side.wait_for("close");
    side.close_lease();
    side.tell("closed");
    side.wait_for("end");
  });
  holder.expect("has it");
  first->signal(SIGKILL);
  EXPECT_EQ(first->wait(), -1);

  const DaemonProcess second(folder);
  JobProcess waiter([&](JobSide& side) {
    side.attach(socket, "waiter");
    side.want();
    side.tell("wants");
    side.wait_granted();
    side.tell("has it");
    side.wait_for("end");
  });
  waiter.expect("wants");
  EXPECT_EQ(testing::status_of(socket)["coordinator"]["is_recovering"], true);
  holder.tell("reconnect");
  holder.expect("is back");
  const auto device = testing::status_of(socket)["devices"][0];
  EXPECT_EQ(device["lanes"][0]["holder"], 2);  // the waiter said hello first
  EXPECT_EQ(testing::job_row(socket, 2)["room_bytes"], mib(4).value());
  holder.tell("close");
  holder.expect("closed");
  waiter.expect("has it");
}

TEST(ServerLife, AfterACrashAJobThatDiesInsteadOfComingBackIsNotWaitedFor) {
  const TempFolder folder;
  auto first = std::make_unique<DaemonProcess>(folder);
  JobProcess holder = make_idle_job(first->socket());
  holder.expect("there");
  first->signal(SIGKILL);
  EXPECT_EQ(first->wait(), -1);
  const DaemonProcess second(folder);
  EXPECT_EQ(testing::status_of(second.socket())["coordinator"]["is_recovering"], true);
  holder.kill();
  EXPECT_TRUE(testing::eventually([&] {
    return testing::status_of(second.socket())["coordinator"]["is_recovering"] == false;
  }));
}

}  // namespace
}  // namespace gpushare::daemon
