#include "csrc/daemon/server/server.h"

#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

// The job's first Need.
wire::Need need_of(JobId job, Bytes bytes) {
  wire::Need need;
  need.of.job = job;
  need.n = 1;
  need.bytes = bytes;
  need.like = bytes;
  return need;
}

class Server : public ::testing::Test {
 protected:
  // Wants a lease, says "has it", and closes when told so; as often as told.
  [[nodiscard]] auto taking_turns(std::string name) const {
    return [this, name](JobSide& side) {
      side.attach(daemon_.socket(), name);
      side.want();
      side.tell("wants");
      side.wait_granted();
      side.tell("has it");
      side.wait_for("close");
      side.close_lease();
      side.tell("closed");
      side.wait_for("end");
    };
  }
  // Until the coordinator has taken note.
  void wait_for_state(std::uint64_t job, const std::string& state) const {
    testing::wait_for_state(daemon_.socket(), job, state);
  }

  TempFolder folder_;
  DaemonProcess daemon_{folder_};
};

TEST_F(Server, GrantsOnThePageAndToTheNextAfterAClose) {
  JobProcess first(taking_turns("first"));
  first.expect("wants");
  first.expect("has it");
  JobProcess second(taking_turns("second"));
  second.expect("wants");
  wait_for_state(2, "waiting");
  first.tell("close");
  first.expect("closed");
  second.expect("has it");
  second.tell("close");
  second.expect("closed");
  for (JobProcess* job : {&first, &second}) {
    job->tell("end");
    EXPECT_EQ(job->wait(), 0);
  }
}

TEST_F(Server, AKilledHolderFreesTheLane) {
  JobProcess holder(taking_turns("holder"));
  holder.expect("wants");
  holder.expect("has it");
  JobProcess waiter(taking_turns("waiter"));
  waiter.expect("wants");
  wait_for_state(2, "waiting");
  holder.kill();
  waiter.expect("has it");
  EXPECT_EQ(holder.wait(), -1);
  EXPECT_TRUE(testing::job_row(daemon_.socket(), 1).is_null());
}

TEST_F(Server, AClosedSocketAloneDoesNotFreeTheLane) {
  JobProcess holder([this](JobSide& side) {
    side.attach(daemon_.socket(), "holder");
    side.want();
    side.wait_granted();
    side.disconnect();
    side.tell("left");
    side.wait_for("close");
    side.close_lease();
    side.wait_for("end");
  });
  holder.expect("left");
  wait_for_state(1, "lost");
  JobProcess waiter(taking_turns("waiter"));
  waiter.expect("wants");
  wait_for_state(2, "waiting");
  // What it closes on its page counts although its socket is gone.
  holder.tell("close");
  waiter.expect("has it");
}

TEST_F(Server, AHolderIsAskedAtItsBoundaryWhenAnotherWaits) {
  JobProcess holder([this](JobSide& side) {
    side.attach(daemon_.socket(), "holder");
    side.want();
    side.wait_granted();
    side.tell("has it");
    side.wait_for("go on until asked");
    const bool is_asked = testing::eventually([&] { return wire::load(side.page()).is_asked(); });
    if (!is_asked) side.give_up("not asked");
    side.close_lease();
    side.tell("closed");
    side.wait_for("end");
  });
  holder.expect("has it");
  JobProcess waiter(taking_turns("waiter"));
  waiter.expect("wants");
  holder.tell("go on until asked");
  holder.expect("closed");
  waiter.expect("has it");
}

TEST_F(Server, ALeaseIsTakenBackInTheGap) {
  JobProcess holder([this](JobSide& side) {
    side.attach(daemon_.socket(), "holder");
    side.want();
    const Term term = side.wait_granted();
    if (wire::try_end(side.page()) != wire::EndResult::kKept) side.give_up("no gap");
    side.tell("in the gap");
    const auto close = side.receive<wire::Close>();
    if (close.term != term) side.give_up("another term");
    if (wire::load(side.page()).state() != wire::LeaseState::kClosing) side.give_up("not closing");
    wire::finish_close(side.page());
    side.kick();
    side.tell("closed");
    side.wait_for("end");
  });
  holder.expect("in the gap");
  JobProcess waiter(taking_turns("waiter"));
  waiter.expect("wants");
  holder.expect("closed");
  waiter.expect("has it");
}

TEST_F(Server, SaysOnThePageHowManyOthersWait) {
  JobProcess holder([this](JobSide& side) {
    side.attach(daemon_.socket(), "holder");
    side.want();
    side.wait_granted();
    side.tell("has it");
    for (const std::uint32_t count : {1U, 0U}) {
      if (!testing::eventually([&] { return side.page().num_waiting.load() == count; })) {
        side.give_up("never " + std::to_string(count));
      }
      side.tell(std::to_string(count));
    }
    side.wait_for("end");
  });
  holder.expect("has it");
  JobProcess waiter([this](JobSide& side) {
    side.attach(daemon_.socket(), "waiter");
    side.want();
    side.wait_for("give up");
    if (!wire::give_up(side.page())) side.give_up("granted");
    side.kick();
    side.wait_for("end");
  });
  holder.expect("1");
  waiter.tell("give up");
  holder.expect("0");
}

TEST_F(Server, SaysOnThePageHowFastAJobMayCopyWhileAnotherComputes) {
  const TempFolder folder;
  const DaemonProcess daemon(folder, {"--transfer-budget", "100MiB"});
  const auto wait_for_rate = [](JobSide& side, Bytes rate) {
    const auto is_so = [&] { return side.page().transfer_rate.load() == rate.value(); };
    if (!testing::eventually(is_so)) side.give_up("never " + to_string(rate));
    side.tell(to_string(rate));
  };
  JobProcess holder([&](JobSide& side) {
    side.attach(daemon.socket(), "holder");
    side.want();
    side.wait_granted();
    side.tell("has it");
    side.wait_for("close");
    if (side.page().transfer_rate.load() != 0) side.give_up("limited itself");
    side.close_lease();
    wait_for_rate(side, mib(100));
    side.wait_for("end");
  });
  holder.expect("has it");
  JobProcess waiter([&](JobSide& side) {
    side.attach(daemon.socket(), "waiter");
    side.want();
    side.page().is_held_back = 1;
    wait_for_rate(side, mib(100));
    side.wait_for("go on");
    side.wait_granted();
    wait_for_rate(side, Bytes{0});
    side.wait_for("end");
  });
  waiter.expect("100.0 MiB");
  const auto row = testing::job_row(daemon.socket(), 2);
  EXPECT_EQ(row["transfer_bytes_per_second"], mib(100).value());
  EXPECT_EQ(row["is_held_back"], true);
  EXPECT_EQ(testing::job_row(daemon.socket(), 1)["is_held_back"], false);
  const auto device = testing::status_of(daemon.socket())["devices"][0];
  EXPECT_EQ(device["transfer_budget_bytes_per_second"], mib(100).value());
  waiter.tell("go on");
  holder.tell("close");
  waiter.expect("0 B");
  holder.expect("100.0 MiB");
}

TEST_F(Server, WhoWaitsForRoomIsExplained) {
  JobProcess first([this](JobSide& side) {
    side.connect(daemon_.socket());
    side.hello(mib(40), Term{0});
    side.tell("has memory");
    side.wait_for("end");
  });
  first.expect("has memory");
  JobProcess second([this](JobSide& side) {
    side.attach(daemon_.socket(), "second");
    side.send(need_of(JobId{2}, mib(30)));
    side.wait_for("end");
  });
  EXPECT_TRUE(testing::eventually([&] {
    const auto row = testing::job_row(daemon_.socket(), 2);
    return row.is_object() && row["waits_for_room"] == true;
  }));
  const auto row = testing::job_row(daemon_.socket(), 2);
  EXPECT_EQ(row["state"], "idle");
  EXPECT_NE(row["explain"].get<std::string>().find("for 30.0 MiB more room"), std::string::npos)
      << row["explain"];
  first.kill();
  second.kill();
}

TEST_F(Server, SaysWhyAJobWaits) {
  JobProcess holder([this](JobSide& side) {
    side.attach(daemon_.socket(), "holder");
    side.want();
    side.tell("open");
    side.wait_for("end");
  });
  holder.expect("open");
  testing::StatusClient client(daemon_.socket());
  const auto answer = client.ask(wire::StatusRequest{JobId{1}});
  ASSERT_TRUE(std::holds_alternative<wire::StatusReport>(answer));
  const auto why = nlohmann::json::parse(std::get<wire::StatusReport>(answer).report)["why"];
  EXPECT_EQ(why["job"], 1);
  EXPECT_EQ(why["state"], "running");
  EXPECT_THAT(why["now"][0].get<std::string>(),
              ::testing::AllOf(::testing::HasSubstr("1 (holder) has had the lane for"),
                               ::testing::HasSubstr("alone in line, by fair")));
  EXPECT_FALSE(testing::status_of(daemon_.socket()).contains("why"));
  const auto refused = client.ask(wire::StatusRequest{JobId{9}});
  ASSERT_TRUE(std::holds_alternative<wire::Refused>(refused));
  EXPECT_EQ(std::get<wire::Refused>(refused).reason, "there is no job 9. See: gpushare status");
  holder.kill();
}

// A warning of the coordinator is one in the log, and stands in the status while it holds.
TEST(ServerWarnings, AreLoggedAndShown) {
  const TempFolder folder;
  const std::string log = folder.path() + "/log";
  const DaemonProcess daemon(folder,
                             {"--host-budget", "2MiB", "--log-file", log, "--log-level", "warn"});
  JobProcess first([&](JobSide& side) {
    side.attach(daemon.socket(), "first");
    side.send(need_of(JobId{1}, mib(40)));
    side.tell("has memory");
    side.wait_for("end");
  });
  first.expect("has memory");
  JobProcess second([&](JobSide& side) {
    side.attach(daemon.socket(), "second");
    side.send(need_of(JobId{2}, mib(30)));
    side.wait_for("end");
  });
  std::string text;
  EXPECT_TRUE(testing::eventually([&] {
    const auto report = testing::status_of(daemon.socket());
    for (const auto& row : report["warnings"]) {
      text = row["text"];
      if (text.starts_with("host budget of 2.0 MiB is too small, with 2.0 MiB left")) return true;
    }
    return false;
  }));
  std::ostringstream logged;
  logged << std::ifstream(log).rdbuf();
  EXPECT_NE(logged.str().find(text), std::string::npos) << logged.str();
  first.kill();
  second.kill();
}

TEST_F(Server, AKilledWaiterIsForgotten) {
  JobProcess holder(taking_turns("holder"));
  holder.expect("wants");
  holder.expect("has it");
  JobProcess waiter(taking_turns("waiter"));
  waiter.expect("wants");
  wait_for_state(2, "waiting");
  waiter.kill();
  EXPECT_TRUE(testing::eventually([&] { return testing::job_row(daemon_.socket(), 2).is_null(); }));
  JobProcess third(taking_turns("third"));
  third.expect("wants");
  holder.tell("close");
  third.expect("has it");
}

}  // namespace
}  // namespace gpushare::daemon
