// One coordinator of several devices: each has a machine of its own, and what is the host's is one.
#include <csignal>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "csrc/wire/messages.h"

#include "tests/cpp/support/daemon_job.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::DaemonProcess;
using testing::job_row;
using testing::JobProcess;
using testing::JobSide;
using testing::status_of;
using testing::StatusClient;
using testing::TempFolder;
using testing::wait_for_state;

class ServerDevices : public ::testing::Test {
 protected:
  // Says on which device it is, wants a lease, and says "has it".
  [[nodiscard]] auto job_on(const std::string& wish) const {
    return [this, wish](JobSide& side) {
      side.connect(daemon_->socket());
      side.tell(side.hello(Bytes{0}, Term{}, wish).of.device);
      side.register_job("job");
      side.want();
      side.wait_granted();
      side.tell("has it");
      side.wait_for("close");
      side.close_lease();
      side.wait_for("end");
    };
  }
  // As job_on(). Asked to "count" it says how many others wait, as its page has it.
  [[nodiscard]] auto counting_job_on(const std::string& device) const {
    return [this, device](JobSide& side) {
      side.connect(daemon_->socket());
      side.hello(Bytes{0}, Term{}, device);
      side.register_job("job");
      side.want();
      side.wait_granted();
      side.tell("has it");
      side.wait_for("count");
      side.tell(std::to_string(side.page().num_waiting.load()));
      side.wait_for("end");
    };
  }

  TempFolder folder_;
  std::unique_ptr<DaemonProcess> daemon_ = std::make_unique<DaemonProcess>(
      folder_, std::vector<std::string>{"--devices", "cpu:0=32MiB,cpu:1=48MiB"});
};

TEST_F(ServerDevices, PlacesJobsThatNameNoneAndRunsThemSideBySide) {
  JobProcess first(job_on("cpu"));
  first.expect("cpu:1");  // as many jobs on both: most room is left there
  first.expect("has it");
  JobProcess second(job_on("cpu"));
  second.expect("cpu:0");
  second.expect("has it");  // while the first one has its lease
  const auto status = status_of(daemon_->socket());
  ASSERT_EQ(status["devices"].size(), 2U);
  EXPECT_EQ(status["devices"][0]["device"], "cpu:0");
  EXPECT_EQ(status["devices"][0]["capacity_bytes"], mib(32).value());
  EXPECT_EQ(status["devices"][1]["device"], "cpu:1");
  EXPECT_EQ(status["devices"][1]["capacity_bytes"], mib(48).value());
  EXPECT_EQ(job_row(daemon_->socket(), 1)["device"], "cpu:1");
  EXPECT_EQ(job_row(daemon_->socket(), 2)["device"], "cpu:0");
}

TEST_F(ServerDevices, JobsOfOneDeviceTakeTurns) {
  JobProcess first(job_on("cpu:1"));
  first.expect("cpu:1");
  first.expect("has it");
  JobProcess second(job_on("cpu:1"));
  second.expect("cpu:1");
  wait_for_state(daemon_->socket(), 2, "waiting");
  first.tell("close");
  second.expect("has it");
}

TEST_F(ServerDevices, WhoWaitsForOneDeviceIsNoMatterOfTheOther) {
  JobProcess alone(counting_job_on("cpu:0"));
  alone.expect("has it");
  JobProcess holder(counting_job_on("cpu:1"));
  holder.expect("has it");
  JobProcess waiting(job_on("cpu:1"));
  waiting.expect("cpu:1");
  wait_for_state(daemon_->socket(), 3, "waiting");
  alone.tell("count");
  alone.expect("0");
  holder.tell("count");
  holder.expect("1");
}

TEST_F(ServerDevices, ADeviceThatIsNotHereIsRefusedWithThoseThatAre) {
  StatusClient job(daemon_->socket());
  wire::Hello hello;
  hello.of.device = "cpu:7";
  const auto answer = job.ask(hello);
  ASSERT_TRUE(std::holds_alternative<wire::Refused>(answer));
  EXPECT_EQ(
      std::get<wire::Refused>(answer).reason,
      "this job wants device cpu:7, and the coordinator at " + daemon_->socket() +
          " has cpu:0, cpu:1: set GPUSHARE_DEVICE to one it has, or start it with cpu:7=SIZE in "
          "GPUSHARE_DEVICES");
}

TEST_F(ServerDevices, QuestionsAndChangesReachTheJobsDevice) {
  JobProcess first(job_on("cpu:0"));
  first.expect("cpu:0");
  first.expect("has it");
  JobProcess second(job_on("cpu:1"));
  second.expect("cpu:1");
  second.expect("has it");
  StatusClient client(daemon_->socket());
  const auto why = client.ask(wire::StatusRequest{.why = JobId{2}});
  ASSERT_TRUE(std::holds_alternative<wire::StatusReport>(why));
  EXPECT_THAT(std::get<wire::StatusReport>(why).report, ::testing::HasSubstr(R"("why":{"job":2)"));
  wire::Set change;
  change.job = JobId{2};
  change.changes.memory_limit = mib(40);
  ASSERT_TRUE(std::holds_alternative<wire::StatusReport>(client.ask(change)));
  EXPECT_EQ(job_row(daemon_->socket(), 2)["memory_limit_bytes"], mib(40).value());
  EXPECT_EQ(job_row(daemon_->socket(), 1)["memory_limit_bytes"], 0);
  ASSERT_TRUE(std::holds_alternative<wire::StatusReport>(client.ask(wire::SetPolicy{"srtf"})));
  const nlohmann::json status = status_of(daemon_->socket());
  for (const auto& device : status["devices"])
    EXPECT_EQ(device["policy"], "srtf") << device["device"];
}

// An older gpushare could not stop at an agreed step.
TEST_F(ServerDevices, RanksThatCountNoStepsAreRefusedOnTwoDevices) {
  const auto rank_on = [this](const std::string& device) {
    return [this, device](JobSide& side) {
      side.connect(daemon_->socket());
      wire::Register wish;
      wish.of = side.hello(Bytes{0}, Term{}, device).of;
      wish.of.gang = "ranks";
      wish.of.ranks = 2;
      wish.of.rank = device == "cpu:0" ? 0 : 1;
      side.send(wish);
      side.tell("asked");
      if (device == "cpu:1") {
        const std::string reason = side.receive<wire::Refused>().reason;
        const bool is_told = reason.find("another one of gang ranks on cpu:0") != reason.npos &&
                             reason.find("Set GPUSHARE_DEVICE=cpu:0") != reason.npos;
        side.tell(is_told ? "refused" : "let in");
      }
      side.wait_for("end");
    };
  };
  JobProcess first(rank_on("cpu:0"));
  first.expect("asked");
  ASSERT_TRUE(testing::eventually([&] {
    const auto row = job_row(daemon_->socket(), 1);
    return row.is_object() && row["gang"] == "ranks";
  }));
  JobProcess second(rank_on("cpu:1"));
  second.expect("asked");
  second.expect("refused");
}

// It would give turns alone, and the rank's program would wait for ever.
TEST_F(ServerDevices, ARankThatReliesOnAnArbiterIsRefusedWhereThereIsNone) {
  JobProcess rank([this](JobSide& side) {
    side.connect(daemon_->socket());
    wire::Register wish;
    wish.of = side.hello(Bytes{0}, Term{}, "cpu:0").of;
    wish.of.gang = "ranks";
    wish.of.ranks = 2;
    wish.stop_at = 0;
    wish.arbiter = "tcp:10.0.0.1:7070";
    side.send(wish);
    const std::string reason = side.receive<wire::Refused>().reason;
    const bool is_told =
        reason.find("have the arbiter tcp:10.0.0.1:7070 in common") != reason.npos &&
        reason.find("has none: end it, or start it with") != reason.npos;
    side.tell(is_told ? "refused" : "another reason");
    side.wait_for("end");
  });
  rank.expect("refused");
}

// Each rank is told the same step before any of them has a lease, and the next gang's row opens
// when both have stopped there.
TEST_F(ServerDevices, TwoGangsTakeTurnsOnTwoDevices) {
  const auto rank_of = [this](const std::string& gang, const std::string& device) {
    return [this, gang, device](JobSide& side) {
      side.connect(daemon_->socket());
      side.hello(Bytes{0}, Term{}, device);
      side.register_rank(gang, device == "cpu:0" ? 0 : 1, 2);
      side.tell("here");
      side.wait_for("want");
      side.want();
      side.wait_granted();
      side.tell("stop at " + std::to_string(side.page().stop_at.load()));
      side.wait_for("stop");
      side.page().gang_steps.store(side.page().stop_at.load());
      side.close_lease();
      side.tell("stopped");
      side.wait_for("end");
    };
  };
  JobProcess first(rank_of("red", "cpu:0"));
  JobProcess second(rank_of("red", "cpu:1"));
  JobProcess third(rank_of("blue", "cpu:0"));
  JobProcess fourth(rank_of("blue", "cpu:1"));
  for (JobProcess* const each : {&first, &second, &third, &fourth})
    each->expect("here");
  first.tell("want");
  second.tell("want");
  first.expect("stop at 4");
  second.expect("stop at 4");
  third.tell("want");
  fourth.tell("want");
  first.tell("stop");
  first.expect("stopped");
  second.tell("stop");
  second.expect("stopped");
  third.expect("stop at 4");
  fourth.expect("stop at 4");
}

// Which device a job was on is not kept, so the machines of all wait for it: until it is back on
// one of them.
TEST_F(ServerDevices, AfterACrashAJobComesBackToItsDevice) {
  JobProcess job([this](JobSide& side) {
    side.attach(daemon_->socket(), "holder");
    side.want();
    const Term term = side.wait_granted();
    side.tell("has it");
    side.wait_for("again");
    side.connect(daemon_->socket());
    side.tell(side.hello(Bytes{0}, term, "cpu:1").of.device);
    side.wait_for("end");
  });
  job.expect("has it");
  daemon_->signal(SIGKILL);
  daemon_->wait();
  daemon_ = std::make_unique<DaemonProcess>(
      folder_, std::vector<std::string>{"--devices", "cpu:0=32MiB,cpu:1=48MiB"});
  job.tell("again");
  job.expect("cpu:1");
  EXPECT_EQ(status_of(daemon_->socket())["coordinator"]["is_recovering"], false);
  EXPECT_EQ(job_row(daemon_->socket(), 1)["device"], "cpu:1");
}

}  // namespace
}  // namespace gpushare::daemon
