// On which of a host's CUDA devices processes are told to be, before they start CUDA.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/daemon/server/promised_places.h"
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

// Each test has devices of its own, since two coordinators may not have one of them.
std::string gpu(int number) {
  return "cuda:GPU-00000000-0000-0000-0000-000" + std::to_string(10000000 + ::getpid() % 10000000) +
         std::to_string(number);
}

std::string placed(const wire::CoordinatorMessage& answer) {
  if (const auto* refused = std::get_if<wire::Refused>(&answer)) return refused->reason;
  return std::get<wire::Placed>(answer).device;
}

class ServerPlacement : public ::testing::Test {
 protected:
  // Asks, says the answer, and says Hello there when it is told to.
  [[nodiscard]] auto asks(const std::string& devices) const {
    return [this, devices](JobSide& side) {
      const std::string device = placed(StatusClient(socket()).ask(wire::Place{devices}));
      side.tell(device);
      side.wait_for("hello");
      side.connect(socket());
      side.tell(side.hello(Bytes{0}, Term{}, device).of.device);
      side.wait_for("again");
      side.tell(placed(StatusClient(socket()).ask(wire::Place{devices})));
      side.wait_for("end");
    };
  }
  [[nodiscard]] const std::string& socket() const { return daemon_.socket(); }

  const std::string first_ = gpu(0);
  const std::string second_ = gpu(1);
  const std::string both_ = first_ + "," + second_;
  TempFolder folder_;
  DaemonProcess daemon_{folder_, {"--devices", first_ + "=32MiB," + second_ + "=32MiB"}};
};

TEST_F(ServerPlacement, ProcessesThatHaveOnlyAskedCountAsJobs) {
  JobProcess one(asks(both_));
  one.expect(first_);
  JobProcess two(asks(both_));
  two.expect(second_);
  JobProcess three(asks(both_));
  three.expect(first_);
}

TEST_F(ServerPlacement, AJobCountsOnceAndStaysWhereItIs) {
  JobProcess one(asks(both_));
  one.expect(first_);
  one.tell("hello");
  one.expect(first_);
  JobProcess two(asks(second_));  // though it is not the empty one for everybody
  two.expect(second_);
  JobProcess three(asks(both_));
  three.expect(first_);
  one.tell("again");
  one.expect(first_);
}

// As the driver tells the process that asks. Of equal numbers of jobs, most room decides.
TEST_F(ServerPlacement, WhatOthersHoldOnADeviceIsNoRoom) {
  const auto ask = [this](const std::string& used) {
    return placed(StatusClient(socket()).ask(wire::Place{both_, used}));
  };
  EXPECT_EQ(ask("16777216,0"), second_);
  EXPECT_EQ(ask("0,16777216"), first_);
  EXPECT_EQ(ask("999999999999999999,0"), second_);
  for (const char* bad : {"", "-5", "x,", "99999999999999999999,0", ",,,,", "1e9,0"})
    EXPECT_EQ(ask(bad), first_) << bad;
}

TEST_F(ServerPlacement, OfDevicesThatAreNotHereNoneIsChosen) {
  EXPECT_EQ(placed(StatusClient(socket()).ask(wire::Place{gpu(7)})), "");
  EXPECT_EQ(placed(StatusClient(socket()).ask(wire::Place{"cpu,,"})), "");
}

// What asked first is a launcher: its child counts in its place.
TEST_F(ServerPlacement, AChildsQuestionEndsThePromiseOfItsParent) {
  EXPECT_EQ(placed(StatusClient(socket()).ask(wire::Place{both_})), first_);
  JobProcess child(asks(both_));
  child.expect(first_);
  JobProcess second(asks(both_));
  second.expect(second_);
}

TEST_F(ServerPlacement, ACoordinatorOfSeveralLeavesOutWhatAnotherHas) {
  const std::string third = gpu(2);
  TempFolder other_folder;
  const DaemonProcess other(other_folder, {"--devices", second_ + "=32MiB," + third + "=32MiB"});
  EXPECT_EQ(placed(StatusClient(other.socket()).ask(wire::Place{second_ + "," + third})), third);
  const auto ended = testing::run_gpushared({"--socket", other_folder.path() + "/more", "--devices",
                                             first_ + "=32MiB," + third + "=32MiB"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.error_text, HasSubstr("has this device (" + first_ + ")"));
}

// A user who may have no more jobs has no promises: they would count as jobs.
TEST(ServerPlacementLimits, WhoHasAsManyJobsAsHeMayIsOnlyTold) {
  const TempFolder folder;
  const std::string config = folder.path() + "/config.toml";
  std::ofstream(config) << "[user.default]\nmax_jobs = 1\n";
  const std::string first = gpu(3);
  const std::string second = gpu(4);
  const DaemonProcess daemon(
      folder, {"--config", config, "--devices", first + "=32MiB," + second + "=32MiB"});
  const auto asks = [&](JobSide& side) {
    side.tell(placed(StatusClient(daemon.socket()).ask(wire::Place{first + "," + second})));
    side.wait_for("hello");
    side.connect(daemon.socket());
    side.tell(side.hello(Bytes{0}, Term{}, first).of.device);
    side.wait_for("end");
  };
  JobProcess job(asks);
  job.expect(first);
  job.tell("hello");
  job.expect(first);
  JobProcess two(asks);
  two.expect(second);
  JobProcess three(asks);
  three.expect(second);
}

TEST(ServerPlacementLimits, ACoordinatorStaysWhileSomebodyIsPromisedAPlace) {
  const TempFolder folder;
  const std::string device = gpu(5);
  DaemonProcess daemon(folder, {"--linger-s", "0", "--devices", device + "=32MiB"});
  JobProcess asker([&](JobSide& side) {
    side.tell(placed(StatusClient(daemon.socket()).ask(wire::Place{device})));
    side.wait_for("end");
  });
  asker.expect(device);
  JobProcess job([&](JobSide& side) {
    side.connect(daemon.socket());
    side.tell(side.hello(Bytes{0}, Term{}, device).of.device);
    side.wait_for("end");
  });
  job.expect(device);
  job.kill();
  ASSERT_TRUE(testing::eventually([&] {
    return testing::status_of(daemon.socket())["devices"][0]["jobs"].empty();
  })) << "its last job is gone";
  EXPECT_EQ(placed(StatusClient(daemon.socket()).ask(wire::Place{device})), device);
  asker.kill();
  StatusClient(daemon.socket()).ask(wire::Stop{});
  EXPECT_EQ(daemon.wait(), 0);
}

// A process that waits to be killed.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    while (pid_ == 0)
      ::pause();
  }
  ~Sleeper() { end(); }
  Sleeper(Sleeper&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Sleeper& operator=(Sleeper&&) = delete;
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  [[nodiscard]] std::int32_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_;
};

TEST(PromisedPlaces, EndWithTheProcessAndInTime) {
  PromisedPlaces places;
  Sleeper sleeper;
  const std::int32_t pid = sleeper.pid();
  places.promise(pid, 7, "cuda:a", seconds(1));
  EXPECT_EQ(places.num_on("cuda:a", seconds(2)), 1U);
  places.promise(pid, 7, "cuda:b", seconds(3));
  EXPECT_EQ(places.num_on("cuda:a", seconds(4)), 0U) << "one a process";
  EXPECT_EQ(places.num_on("cuda:b", seconds(4) + PromisedPlaces::kLongest), 0U);
  places.promise(pid, 7, "cuda:b", seconds(3));
  places.end(pid);
  EXPECT_EQ(places.num(seconds(3)), 0U);
  places.promise(pid, 7, "cuda:b", seconds(3));
  sleeper.end();
  EXPECT_EQ(places.num_on("cuda:b", seconds(3) + millis(199)), 1U) << "not looked at again yet";
  EXPECT_EQ(places.num_on("cuda:b", seconds(3) + millis(200)), 0U);
  places.promise(pid, 7, "cuda:b", seconds(4));
  EXPECT_EQ(places.num(seconds(4)), 0U) << "no such process";
}

TEST(PromisedPlaces, TheOldestOfAUserEndsForOneMore) {
  PromisedPlaces places;
  std::vector<Sleeper> sleepers(PromisedPlaces::kMostOfUser + 1);
  places.promise(static_cast<std::int32_t>(::getpid()), 8, "cuda:a", seconds(1));
  for (const Sleeper& sleeper : sleepers) {
    const bool is_first = &sleeper == &sleepers.front();
    places.promise(sleeper.pid(), 7, is_first ? "cuda:a" : "cuda:b", seconds(1));
  }
  EXPECT_EQ(places.num_on("cuda:a", seconds(1)), 1U) << "another user's stays";
  EXPECT_EQ(places.num_on("cuda:b", seconds(1)), PromisedPlaces::kMostOfUser);
}

}  // namespace
}  // namespace gpushare::daemon
