// Peers that do what no job should: each costs only itself.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/base/unique_fd.h"
#include "csrc/daemon/server/visitors.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/codec.h"
#include "csrc/wire/lease_page.h"
#include "csrc/wire/messages.h"

#include "tests/cpp/support/daemon_fake_proc.h"
#include "tests/cpp/support/daemon_job.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::DaemonProcess;
using testing::JobProcess;
using testing::JobSide;
using testing::StatusClient;
using testing::TempFolder;

class ServerSessions : public ::testing::Test {
 protected:
  // A job that is served before and after what a bad peer does.
  JobProcess make_witness() {
    return JobProcess([this](JobSide& side) {
      side.attach(daemon_.socket(), "witness");
      side.tell("there");
      side.wait_for("check");
      side.want();
      side.wait_granted();
      side.close_lease();
      side.tell("served");
      side.wait_for("end");
    });
  }
  static void expect_served(JobProcess& witness) {
    witness.tell("check");
    witness.expect("served");
  }
  static std::string refusal(const wire::CoordinatorMessage& message) {
    const auto* refused = std::get_if<wire::Refused>(&message);
    return refused == nullptr ? "not refused" : refused->reason;
  }

  TempFolder folder_;
  DaemonProcess daemon_{folder_};
};

TEST_F(ServerSessions, BadBytesCloseOnlyThatPeer) {
  JobProcess witness = make_witness();
  witness.expect("there");
  const std::string longest(wire::kMaxMessageBytes + 1, 'x');
  for (const std::string& bytes :
       {std::string("{"), std::string("\0\1\2", 3), std::string(R"({"v":1,"type":"nonsense"})"),
        std::string(R"({"v":1,"type":"gone"})"), longest}) {
    StatusClient peer(daemon_.socket());
    EXPECT_FALSE(refusal(peer.ask_bytes(bytes)).empty()) << bytes.substr(0, 50);
    EXPECT_TRUE(peer.is_at_end()) << bytes.substr(0, 50);
  }
  expect_served(witness);
}

TEST_F(ServerSessions, ADescriptorIsRefused) {
  JobProcess witness = make_witness();
  witness.expect("there");
  const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  const auto peer = ipc::connect_to(daemon_.socket());
  ASSERT_TRUE(peer.has_value());
  const std::string hello = wire::encode(wire::JobMessage(wire::Hello{}));
  // By the kernel where it can, else by the daemon.
  if (ipc::send_packet(peer->get(), hello, {event.get()}).ok()) {
    ASSERT_TRUE(ipc::wait_readable(peer->get(), seconds(20)).value_or(false));
    const auto answer = ipc::receive_packet(peer->get(), wire::kMaxMessageBytes);
    ASSERT_TRUE(answer.has_value());
    EXPECT_THAT(answer->bytes, ::testing::HasSubstr("descriptors"));
  }
  expect_served(witness);
}

TEST_F(ServerSessions, WhatAJobSaysOfACpuChangesNothing) {
  wire::Hello hello;
  hello.of.device = "cpu";
  hello.device_total = hello.device_free = Bytes{1};
  StatusClient liar(daemon_.socket());
  EXPECT_TRUE(std::holds_alternative<wire::Welcome>(liar.ask(hello)));
  const auto device = testing::status_of(daemon_.socket())["devices"][0];
  EXPECT_EQ(device["capacity_bytes"], mib(64).value());
  EXPECT_EQ(device["withheld_bytes"], 0);
}

TEST_F(ServerSessions, AJobsMessageBeforeHelloIsRefused) {
  JobProcess witness = make_witness();
  witness.expect("there");
  StatusClient peer(daemon_.socket());
  EXPECT_EQ(refusal(peer.ask(wire::Register{})), "the first message of a job must be hello");
  EXPECT_TRUE(peer.is_at_end());
  expect_served(witness);
}

TEST_F(ServerSessions, AJobForAnotherDeviceIsToldWhereThatIsToBeHad) {
  const std::string gpu = "cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
  const std::string its_socket = folder_.path() + "/GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9.sock";
  wire::Hello hello;
  hello.of.device = gpu;
  StatusClient peer(daemon_.socket());
  EXPECT_EQ(
      refusal(peer.ask(hello)),
      "this job wants device " + gpu + ", and the coordinator at " + daemon_.socket() +
          " has cpu: use GPUSHARE_SOCKET=" + its_socket +
          ", or leave it unset; a job starts a coordinator there, as does: gpushared --device " +
          gpu + " --capacity SIZE --socket " + its_socket);
  EXPECT_TRUE(peer.is_at_end());
  StatusClient other(daemon_.socket());
  hello.of.device = "cuda:\x1b[2J";
  EXPECT_EQ(refusal(other.ask(hello)),
            "no device is called \"cuda:?[2J\"; a name is cpu, cpu:NUMBER, cuda:GPU-UUID or "
            "cuda:MIG-UUID, as "
            "nvidia-smi -L says");
  EXPECT_TRUE(testing::status_of(daemon_.socket())["devices"][0]["jobs"].empty());
}

TEST_F(ServerSessions, AnImpossibleWordClosesOnlyThatPeer) {
  JobProcess witness = make_witness();
  witness.expect("there");
  JobProcess liar([this](JobSide& side) {
    side.attach(daemon_.socket(), "liar");
    const wire::LeaseWord open(Term{9}, wire::LeaseState::kOpenBusy, false);
    side.page().word.store(open.bits());
    side.kick();
    if (side.receive<wire::Refused>().reason != "closed") side.give_up("not closed");
    side.tell("out");
    side.wait_for("end");
  });
  liar.expect("out");
  expect_served(witness);
}

TEST_F(ServerSessions, SpeakingAsAnotherJobIsRefused) {
  JobProcess witness = make_witness();
  witness.expect("there");
  JobProcess liar([this](JobSide& side) {
    side.connect(daemon_.socket());
    side.hello(Bytes{0}, Term{0});
    wire::Unregister message;
    message.of.job = JobId{1};  // the witness
    side.send(message);
    side.receive<wire::Refused>();
    side.tell("refused");
    side.wait_for("end");
  });
  liar.expect("refused");
  expect_served(witness);
}

TEST_F(ServerSessions, AProcessThatComesBackKeepsItsNumberAndGetsANewPage) {
  JobProcess job([this](JobSide& side) {
    side.connect(daemon_.socket());
    const JobId number = side.hello(Bytes{0}, Term{0}).of.job;
    side.register_job("job");
    side.want();
    const Term held = side.wait_granted();
    side.disconnect();
    side.connect(daemon_.socket());
    if (side.hello(mib(2), held).of.job != number) side.give_up("another number");
    side.register_job("job");
    // The lease goes on, on the new page.
    const wire::LeaseWord word = wire::load(side.page());
    if (word != wire::LeaseWord(held, wire::LeaseState::kOpenBusy, false)) side.give_up("word");
    side.close_lease();
    side.want();
    if (side.wait_granted() <= held) side.give_up("an old term");
    side.tell("done");
    side.wait_for("end");
  });
  job.expect("done");
}

TEST_F(ServerSessions, ASecondConnectionOfAProcessIsRefusedWhileTheFirstLives) {
  JobProcess job([this](JobSide& side) {
    side.attach(daemon_.socket(), "job");
    JobSide second{UniqueFd()};
    second.connect(daemon_.socket());
    second.send(wire::Hello{});
    if (second.receive<wire::Refused>().reason.find("already") == std::string::npos) {
      side.give_up("another reason");
    }
    side.want();
    side.wait_granted();
    side.tell("served");
    side.wait_for("end");
  });
  job.expect("served");
}

TEST_F(ServerSessions, RegisteringAgainAfterUnregisterGetsANewPage) {
  JobProcess job([this](JobSide& side) {
    side.connect(daemon_.socket());
    const auto welcome = side.hello(Bytes{0}, Term{0});
    for (int i = 0; i < 2; ++i) {
      side.register_job("job");
      if (wire::load(side.page()) != wire::LeaseWord{}) side.give_up("a used page");
      side.want();
      side.wait_granted();
      side.close_lease();
      wire::Unregister message;
      message.of = welcome.of;
      side.send(message);
    }
    side.tell("done");
    side.wait_for("end");
  });
  job.expect("done");
}

TEST_F(ServerSessions, NumbersAreNotUsedTwice) {
  for (std::uint64_t number = 1; number <= 3; ++number) {
    JobProcess job([this, number](JobSide& side) {
      side.connect(daemon_.socket());
      if (side.hello(Bytes{0}, Term{0}).of.job != JobId{number}) side.give_up("another number");
    });
    EXPECT_EQ(job.wait(), 0);
    EXPECT_TRUE(
        testing::eventually([&] { return testing::job_row(daemon_.socket(), number).is_null(); }));
  }
}

// There they would not be counted among those of its user.
TEST_F(ServerSessions, QuestionsOnAJobsConnectionAreRefused) {
  wire::Hello hello;
  hello.of.device = "cpu";
  const std::vector<wire::JobMessage> questions{wire::StatusRequest{}, wire::Set{},
                                                wire::SetPolicy{"fifo"}};
  for (const wire::JobMessage& question : questions) {
    StatusClient job(daemon_.socket());
    EXPECT_TRUE(std::holds_alternative<wire::Welcome>(job.ask(hello)));
    EXPECT_EQ(refusal(job.ask(question)), "a question about jobs needs a connection of its own");
    EXPECT_TRUE(job.is_at_end());
  }
  EXPECT_EQ(testing::status_of(daemon_.socket())["devices"][0]["policy"], "fair");
}

// What a peer does not read fills its buffer: the daemon must close it, not wait.
TEST_F(ServerSessions, APeerThatNeverReadsIsClosed) {
  JobProcess witness = make_witness();
  witness.expect("there");
  JobProcess deaf([this](JobSide& side) {
    side.connect(daemon_.socket());
    const auto welcome = side.hello(Bytes{0}, Term{0});
    wire::Explain question;
    question.of = welcome.of;
    side.send_until_closed(question);
    side.tell("out");
    side.wait_for("end");
  });
  deaf.expect("out");
  expect_served(witness);
}

TEST_F(ServerSessions, ConnectionsWithoutEndCostOnlyTheirUser) {
  JobProcess witness = make_witness();
  witness.expect("there");
  std::vector<std::unique_ptr<StatusClient>> silent;
  for (int i = 0; i < 200; ++i)
    silent.push_back(std::make_unique<StatusClient>(daemon_.socket()));
  EXPECT_EQ(refusal(silent.front()->receive()), "too many connections that are no job's");
  EXPECT_TRUE(silent.front()->is_at_end());
  EXPECT_FALSE(testing::status_of(daemon_.socket()).empty());
  expect_served(witness);
}

TEST_F(ServerSessions, QuestionsWithoutEndAreAnsweredLater) {
  JobProcess witness = make_witness();
  witness.expect("there");
  std::vector<std::unique_ptr<StatusClient>> asking;
  for (int i = 0; i < 50; ++i)
    asking.push_back(std::make_unique<StatusClient>(daemon_.socket()));
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& client : asking)
      client->tell(wire::StatusRequest{});
  }
  expect_served(witness);
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& client : asking)
      EXPECT_TRUE(std::holds_alternative<wire::StatusReport>(client->receive()));
  }
}

TEST_F(ServerSessions, WhoComesAfterOneThatWasNotHeardIsNotTakenForIt) {
  std::vector<std::unique_ptr<StatusClient>> asking;
  for (std::size_t i = 0; i < Visitors::kMostOfUser; ++i) {
    asking.push_back(std::make_unique<StatusClient>(daemon_.socket()));
    for (int message = 0; message < 20; ++message)
      asking.back()->tell(wire::StatusRequest{});
  }
  // All that is heard at once, or nearly.
  for (int answer = 0; answer < 15; ++answer) {
    for (const auto& client : asking)
      client->receive();
  }
  // For each of these one of the others is closed, and a later one has its number.
  std::vector<std::unique_ptr<StatusClient>> next;
  for (int i = 0; i < 30; ++i) {
    next.push_back(std::make_unique<StatusClient>(daemon_.socket()));
    next.back()->tell(wire::StatusRequest{});
  }
  for (const auto& client : next)
    EXPECT_TRUE(std::holds_alternative<wire::StatusReport>(client->receive()));
}

class FewJobs : public ::testing::Test {
 protected:
  TempFolder folder_;
};

TEST_F(FewJobs, AUserHasNoMoreJobsThanHeMayHave) {
  const std::string config = folder_.path() + "/config.toml";
  testing::write_file(config, fmt::format("[user.{}]\nmax_jobs = 1\n", ::getuid()));
  const DaemonProcess daemon(folder_, {"--config", config});
  JobProcess first([&](JobSide& side) {
    side.attach(daemon.socket(), "first");
    side.tell("there");
    side.wait_for("end");
  });
  first.expect("there");
  StatusClient second(daemon.socket());
  wire::Hello hello;
  hello.of.device = "cpu";
  const auto answer = second.ask(hello);
  const auto* refused = std::get_if<wire::Refused>(&answer);
  ASSERT_NE(refused, nullptr);
  EXPECT_THAT(refused->reason, ::testing::HasSubstr("has 1 jobs here, which is the most"));
}

}  // namespace
}  // namespace gpushare::daemon
