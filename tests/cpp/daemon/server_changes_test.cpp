// What people change while jobs run: a job is paused, the policy is another.
#include <csignal>
#include <memory>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/wire/lease_page.h"
#include "csrc/wire/messages.h"

#include "tests/cpp/support/daemon_job.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::DaemonProcess;
using ::testing::HasSubstr;
using testing::JobProcess;
using testing::JobSide;
using testing::StatusClient;
using testing::TempFolder;

wire::Set pause(std::uint64_t job, bool is_paused) {
  return {.job = JobId{job}, .changes = {.is_paused = is_paused}};
}

void expect_done(StatusClient& client, const wire::JobMessage& message) {
  EXPECT_TRUE(std::holds_alternative<wire::StatusReport>(client.ask(message)));
}

void expect_refused(StatusClient& client, const wire::JobMessage& message, const char* why) {
  const auto answer = client.ask(message);
  ASSERT_TRUE(std::holds_alternative<wire::Refused>(answer));
  EXPECT_THAT(std::get<wire::Refused>(answer).reason, HasSubstr(why));
}

std::string policy_of(const std::string& socket) {
  return testing::status_of(socket)["devices"][0]["policy"];
}

TEST(ServerChanges, APausedHolderIsAskedAndWaitsUntilItIsResumed) {
  const TempFolder folder;
  const DaemonProcess daemon(folder);
  JobProcess job([&](JobSide& side) {
    side.attach(daemon.socket(), "job");
    side.want();
    side.wait_granted();
    side.tell("has it");
    const bool is_asked = testing::eventually([&] { return wire::load(side.page()).is_asked(); });
    if (!is_asked) side.give_up("not asked");
    side.close_lease();
    side.want();
    side.tell("wants again");
    side.wait_granted();
    side.tell("has it");
    side.wait_for("end");
  });
  job.expect("has it");
  StatusClient client(daemon.socket());
  expect_done(client, pause(1, true));
  job.expect("wants again");
  EXPECT_TRUE(testing::eventually([&] {
    const auto row = testing::job_row(daemon.socket(), 1);
    return row["state"] == "paused" && row["iterations"] == 0 && !row["explain"].empty();
  }));
  const auto row = testing::job_row(daemon.socket(), 1);
  EXPECT_THAT(std::string(row["explain"]), HasSubstr("to go on: gpushare resume 1"));
  EXPECT_FALSE(row["paused_by_uid"].is_null());
  expect_done(client, pause(1, false));
  job.expect("has it");
  EXPECT_TRUE(testing::job_row(daemon.socket(), 1)["paused_by_uid"].is_null());
}

wire::Set set_priority(std::uint64_t job, wire::Priority priority) {
  return {.job = JobId{job}, .changes = {.priority = priority}};
}

TEST(ServerChanges, AJobsPageSaysWhetherSomebodyMayInterruptIt) {
  const TempFolder folder;
  const DaemonProcess daemon(folder);
  JobProcess train([&](JobSide& side) {
    side.attach(daemon.socket(), "train");
    side.tell("there");
    for (const std::uint32_t expected : {1U, 0U, 1U, 0U}) {
      side.wait_for("look");
      if (!testing::eventually([&] { return side.page().may_be_interrupted == expected; }))
        side.give_up("its page says otherwise");
      side.tell("seen");
    }
  });
  train.expect("there");
  JobProcess serve([&](JobSide& side) {
    side.attach(daemon.socket(), "serve");
    side.tell("there");
    side.wait_for("end");
  });
  serve.expect("there");
  const auto look = [&] {
    train.tell("look");
    train.expect("seen");
  };
  StatusClient client(daemon.socket());
  expect_done(client, set_priority(1, wire::Priority::kOpportunistic));
  expect_done(client, set_priority(2, wire::Priority::kGuaranteed));
  look();
  expect_done(client, wire::SetPolicy{"pack"});
  look();
  expect_done(client, wire::SetPolicy{"fair"});
  look();
  serve.tell("end");
  look();
}

TEST(ServerChanges, APolicyThatWasSetOutlivesACrash) {
  const TempFolder folder;
  auto first = std::make_unique<DaemonProcess>(folder);
  const std::string socket = first->socket();
  {
    StatusClient client(socket);
    EXPECT_EQ(policy_of(socket), "fair");
    expect_done(client, wire::SetPolicy{"rr"});
    EXPECT_EQ(policy_of(socket), "rr");
    expect_refused(client, wire::SetPolicy{"best"}, "no policy is called 'best': use one of fifo");
  }
  EXPECT_EQ(policy_of(socket), "rr");
  first->signal(SIGKILL);
  first->wait();
  {
    DaemonProcess second(folder);
    EXPECT_EQ(policy_of(socket), "rr");
    second.signal(SIGTERM);
    EXPECT_EQ(second.wait(), 0);
  }
  // An end in order is the end of it.
  const DaemonProcess third(folder);
  EXPECT_EQ(policy_of(socket), "fair");
}

}  // namespace
}  // namespace gpushare::daemon
