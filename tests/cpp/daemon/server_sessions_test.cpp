// Peers that do what no job should: each costs only itself.
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "csrc/wire/codec.h"
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
            "no device is called \"cuda:?[2J\"; a name is cpu, cuda:GPU-UUID or cuda:MIG-UUID, as "
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

}  // namespace
}  // namespace gpushare::daemon
