// On which of a host's CUDA devices processes are told to be, before they start CUDA.
#include <unistd.h>

#include <cstdint>
#include <string>
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
  two.kill();
  ::usleep(300'000);  // it is looked at five times a second
  JobProcess four(asks(both_));
  four.expect(second_);
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

TEST(PromisedPlaces, EndInTimeAndForTheOldestOfAUser) {
  PromisedPlaces places;
  const auto own = static_cast<std::int32_t>(::getpid());
  places.promise(own, 7, "cuda:a", seconds(1));
  EXPECT_EQ(places.num_on("cuda:a", seconds(2)), 1U);
  places.promise(own, 7, "cuda:b", seconds(3));
  EXPECT_EQ(places.num_on("cuda:a", seconds(4)), 0U) << "one a process";
  EXPECT_EQ(places.num_on("cuda:b", seconds(4) + PromisedPlaces::kLongest), 0U);
  places.promise(own, 7, "cuda:b", seconds(3));
  places.end(own);
  EXPECT_EQ(places.num_on("cuda:b", seconds(4)), 0U);
  places.promise(-1, 7, "cuda:b", seconds(3));
  EXPECT_EQ(places.num_on("cuda:b", seconds(4)), 0U) << "no such process";
  EXPECT_TRUE(places.empty());
}

}  // namespace
}  // namespace gpushare::daemon
