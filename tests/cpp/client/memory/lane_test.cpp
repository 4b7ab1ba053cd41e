// What a job tells of its lane at a close, and what it does with the table it is told.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/residency/lane_chunks.h"

#include "tests/cpp/support/client_fake_coordinator.h"
#include "tests/cpp/support/client_job_world.h"
#include "tests/cpp/support/lane_file.h"
#include "tests/cpp/support/readable.h"

namespace gpushare::client {
namespace {

using gpushare::testing::is_readable;
using gpushare::testing::LaneFile;
using wire::LeaseState;

constexpr Bytes kTensor = mib(6);
constexpr std::size_t kNumSlots = 3;

class LaneOfAJob : public ::testing::Test {
 protected:
  LaneOfAJob() : LaneOfAJob(ClientConfig{}) {}
  explicit LaneOfAJob(ClientConfig config) {
    config.connect_timeout = seconds(20);
    // A coordinator that seems to be there at once: the test makes the real one.
    config.daemon_path = "/bin/true";
    config.socket_paths = {folder_.file("sock")};
    job_ = std::make_unique<JobWorld>(folder_, config);
    start(1);
    EXPECT_TRUE(job_->runtime->register_job({.name = "gpt"}).ok());
    coordinator_->wait_for<wire::Register>();
    coordinator_->page().num_sharing = 2;
  }
  void start(std::uint64_t epoch) {
    FakeSettings settings;
    settings.epoch = epoch;
    coordinator_ = std::make_unique<FakeCoordinator>(folder_.file("sock"), settings);
  }
  void enter(std::uint64_t grant_n = 0) {
    auto entered = job_->begin_elsewhere();
    coordinator_->wait_state(LeaseState::kWanted);
    coordinator_->grant_lease(grant_n);
    EXPECT_TRUE(entered.get().has_value());
  }
  // Ends the iteration, and with it the lease.
  void close() {
    EXPECT_EQ(coordinator_->ask(), wire::AskResult::kAsked);
    job_->end();
    EXPECT_EQ(wire::load(coordinator_->page()).state(), LeaseState::kIdle);
  }
  void use_and_free() { const Tensor tensor(*job_->allocator, kTensor, 0x17); }
  // A tensor's chunks are promoted, and mapped with the next lease.
  void promote() {
    for (int i = 0; i < 3; ++i) {
      enter();
      use_and_free();
      close();
    }
    change_ = coordinator_->wait_for<wire::LaneChanged>();
  }
  void tell_slots(std::vector<std::uint32_t> slots) {
    table_n_ += 100;
    coordinator_->send(wire::LaneTable{.of = {.job = JobId{7}}, .n = table_n_, .slots = slots},
                       {file_.fd()});
  }
  static int num_open_lane_files() {
    int num = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
      num += target.find("gpushare-lane") != std::string::npos ? 1 : 0;
    }
    return num;
  }
  void share() {
    promote();
    tell_slots({0, 1, 2});
    enter(table_n_);
  }

  TestFolder folder_;
  LaneFile file_{16};
  std::uint64_t table_n_ = 0;
  std::unique_ptr<JobWorld> job_;
  std::unique_ptr<FakeCoordinator> coordinator_;
  wire::LaneChanged change_;
};

class StrictLane : public LaneOfAJob {
 protected:
  StrictLane() : LaneOfAJob(strict()) {}
  static ClientConfig strict() {
    ClientConfig config;
    config.lane_strict = true;
    return config;
  }
};

class JobWithoutLane : public LaneOfAJob {
 protected:
  JobWithoutLane() : LaneOfAJob(apart()) {}
  static ClientConfig apart() {
    ClientConfig config;
    config.lanes = false;
    return config;
  }
};

TEST_F(JobWithoutLane, KeepsAllMemoryToItself) {
  for (int i = 0; i < 5; ++i) {
    enter();
    use_and_free();
    close();
    EXPECT_GE(job_->allocator->backed(), kTensor);
  }
  EXPECT_FALSE(coordinator_->has<wire::LaneChanged>());
}

TEST_F(StrictLane, ItsMemoryCannotBeReadBetweenLeases) {
  share();
  const void* address = nullptr;
  {
    const Tensor tensor(*job_->allocator, kTensor, 0x17);
    address = tensor.address();
    EXPECT_TRUE(is_readable(address));
  }
  close();
  EXPECT_FALSE(is_readable(address));
  enter(table_n_);
  EXPECT_TRUE(is_readable(address));
  use_and_free();
}

TEST_F(LaneOfAJob, ItsMemoryCanBeReadBetweenLeases) {
  share();
  const void* address = nullptr;
  {
    const Tensor tensor(*job_->allocator, kTensor, 0x17);
    address = tensor.address();
  }
  close();
  EXPECT_TRUE(is_readable(address));
}

// A lane of more than one portion, and a job that cannot wait just as the lease is granted.
TEST_F(LaneOfAJob, GivesALeaseBackThatIsAskedForWhileItsMemoryIsMapped) {
  constexpr std::uint32_t kMany = 12;
  const auto use_all = [this] { const Tensor tensor(*job_->allocator, mib(2) * kMany, 0x17); };
  for (int i = 0; i < 3; ++i) {
    enter();
    use_all();
    close();
  }
  ASSERT_EQ(coordinator_->wait_for<wire::LaneChanged>().num_chunks, kMany);
  tell_slots({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  auto entered = job_->begin_elsewhere();
  coordinator_->wait_state(LeaseState::kWanted);
  const Term term = wire::load(coordinator_->page()).term();
  coordinator_->page().urgent_term = term.value + 1;
  EXPECT_EQ(coordinator_->grant_lease(table_n_).value, term.value + 1);
  coordinator_->wait_state(LeaseState::kWanted);
  EXPECT_EQ(coordinator_->page().is_parked.load(), 1U);
  coordinator_->grant_lease(table_n_);
  EXPECT_EQ(*entered.get(), GateResult::kEntered);
  EXPECT_EQ(file_.occupied(), mib(2) * kMany);
  use_all();
}

TEST_F(LaneOfAJob, GivesUpWhatWasFreeAtThreeCloses) {
  enter();
  use_and_free();
  close();
  const Bytes room = job_->allocator->room();
  const Bytes backed = job_->allocator->backed();
  EXPECT_FALSE(coordinator_->has<wire::LaneChanged>());
  enter();
  use_and_free();
  close();
  enter();
  use_and_free();
  close();
  const auto changed = coordinator_->wait_for<wire::LaneChanged>();
  EXPECT_EQ(changed.n, 1U);
  EXPECT_EQ(changed.given, kTensor);
  EXPECT_EQ(changed.num_chunks, kNumSlots);
  EXPECT_EQ(coordinator_->page().lane_changes.load(), 1U);
  EXPECT_EQ(job_->allocator->room(), room - kTensor);
  EXPECT_EQ(job_->allocator->backed(), backed - kTensor);
  // It needs the less at its next lease.
  EXPECT_EQ(coordinator_->page().need_bytes.load(), (backed - kTensor).value());
}

TEST_F(LaneOfAJob, GivesNothingUpWhileItIsAlone) {
  coordinator_->page().num_sharing = 1;
  for (int i = 0; i < 5; ++i) {
    enter();
    use_and_free();
    close();
  }
  EXPECT_FALSE(coordinator_->has<wire::LaneChanged>());
}

TEST_F(LaneOfAJob, EntersWhenTheTableThatItsLeaseCountsOnIsThere) {
  promote();
  auto entered = job_->begin_elsewhere();
  coordinator_->wait_state(LeaseState::kWanted);
  coordinator_->grant_lease(100);
  EXPECT_EQ(entered.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  tell_slots({4, 5, 9, 10});
  EXPECT_TRUE(entered.get().has_value());
  const Tensor tensor(*job_->allocator, kTensor, 0x18);
  EXPECT_TRUE(tensor.is_intact());
  EXPECT_EQ(file_.occupied(), kTensor);
  EXPECT_EQ(job_->runtime->stats().memory.lane, kTensor);
}

TEST_F(LaneOfAJob, KeepsASlotWithALiveTensorAsItsRoom) {
  share();
  const Bytes room = job_->allocator->room();
  const Tensor tensor(*job_->allocator, kTensor, 0x19);
  close();
  const auto changed = coordinator_->wait_for<wire::LaneChanged>();
  EXPECT_EQ(changed.n, 2U);
  EXPECT_EQ(changed.given, Bytes{});
  EXPECT_EQ(changed.num_chunks, 0U);
  EXPECT_EQ(changed.donated, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(job_->allocator->room(), room + kTensor);
  EXPECT_EQ(job_->runtime->stats().memory.donated, kTensor);
  EXPECT_TRUE(tensor.is_intact());
}

TEST_F(LaneOfAJob, SaysNothingAndMapsNothingWhereNothingHasChanged) {
  share();
  for (int i = 0; i < 3; ++i) {
    use_and_free();
    close();
    enter(table_n_);
  }
  EXPECT_FALSE(coordinator_->has<wire::LaneChanged>());
  EXPECT_EQ(job_->runtime->stats().memory.lane, kTensor);
}

TEST_F(LaneOfAJob, RunsOnWithFewerSlotsThanChunks) {
  promote();
  tell_slots({7});
  enter(table_n_);
  EXPECT_EQ(job_->runtime->stats().memory.lane, mib(2));
  const Tensor tensor(*job_->allocator, kTensor, 0x1a);
  EXPECT_TRUE(tensor.is_intact());
}

TEST_F(LaneOfAJob, WhatThePoolHasNoSlotForIsRoomItNeeds) {
  promote();
  const std::int64_t need = coordinator_->page().need_bytes.load();
  tell_slots({7});
  enter(table_n_);
  close();
  EXPECT_EQ(coordinator_->page().need_bytes.load(), need + mib(4).value());
}

TEST_F(LaneOfAJob, WhatNoIterationUsesIsGivenBack) {
  share();
  for (int i = 0; i < gpushare::alloc::LaneChunks::kUnusedCloses; ++i) {
    close();
    EXPECT_FALSE(coordinator_->has<wire::LaneChanged>());
    enter(table_n_);
  }
  close();
  const auto changed = coordinator_->wait_for<wire::LaneChanged>();
  EXPECT_EQ(changed.num_chunks, 0U);
  EXPECT_EQ(changed.given, Bytes{});
  EXPECT_EQ(job_->runtime->stats().memory.lane, Bytes{});
}

TEST_F(LaneOfAJob, AGrantThatHasNotHeardOfAChangeIsCorrectedByIt) {
  promote();
  const Bytes room = job_->allocator->room();
  // Sent before the change was heard: it still counts what was given up.
  wire::Grant grant{.of = {.job = JobId{7}}, .n = 50, .room = room + kTensor + mib(4)};
  coordinator_->send(grant);
  coordinator_->wait_for<wire::Consumed>();
  grant.n = 51;
  coordinator_->send(grant);
  while (coordinator_->wait_for<wire::Consumed>().n < 51) {
  }
  EXPECT_EQ(job_->allocator->room(), room + mib(4));
  grant = {.of = grant.of, .n = 52, .room = room + mib(6), .lane_n = 1};
  coordinator_->send(grant);
  while (coordinator_->wait_for<wire::Consumed>().n < 52) {
  }
  EXPECT_EQ(job_->allocator->room(), room + mib(6));
}

TEST_F(LaneOfAJob, TheHolderKeepsItsSlotsWhenItsConnectionIsLost) {
  share();
  const Tensor tensor(*job_->allocator, kTensor, 0x1b);
  const Bytes backed = job_->allocator->backed();
  coordinator_->wait_for<wire::Hello>();
  coordinator_->drop_connection();
  const auto hello = coordinator_->wait_for<wire::Hello>();
  EXPECT_EQ(hello.lane_epoch, 1U);
  EXPECT_EQ(hello.lane_slots, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(hello.resident, backed + kTensor);
  EXPECT_TRUE(tensor.is_intact());
}

TEST_F(LaneOfAJob, AWaiterLeavesItsSlotsToTheOthersWhenItsConnectionIsLost) {
  share();
  close();
  coordinator_->wait_for<wire::Hello>();
  coordinator_->drop_connection();
  const auto hello = coordinator_->wait_for<wire::Hello>();
  EXPECT_TRUE(hello.lane_slots.empty());
  EXPECT_EQ(hello.resident, job_->allocator->backed());
  EXPECT_EQ(job_->runtime->stats().memory.lane, Bytes{});
  EXPECT_EQ(file_.occupied(), kTensor);  // it may be somebody else's by now
}

TEST_F(LaneOfAJob, WithAnotherCoordinatorItsSlotsTurnPrivateAtTheNextClose) {
  share();
  const Tensor tensor(*job_->allocator, kTensor, 0x1c);
  coordinator_.reset();
  start(2);
  coordinator_->wait_for<wire::Register>();
  EXPECT_EQ(job_->runtime->explain(seconds(20)), "job 9 holds the device");
  EXPECT_EQ(file_.occupied(), kTensor);
  EXPECT_EQ(num_open_lane_files(), 2);
  close();
  EXPECT_EQ(file_.occupied(), Bytes{});
  EXPECT_EQ(num_open_lane_files(), 1);  // the test's: the old coordinator's memory goes with it
  EXPECT_EQ(job_->runtime->stats().memory.donated, Bytes{});
  EXPECT_TRUE(tensor.is_intact());
  EXPECT_FALSE(coordinator_->has<wire::LaneChanged>());
}

TEST_F(LaneOfAJob, UnregisteredItHasNoPartInTheLane) {
  share();
  job_->end();
  job_->runtime->unregister_job();
  EXPECT_EQ(job_->runtime->stats().memory.lane, Bytes{});
  const Tensor tensor(*job_->allocator, kTensor, 0x1d);  // private memory
  EXPECT_TRUE(tensor.is_intact());
  EXPECT_EQ(file_.occupied(), kTensor);
}

}  // namespace
}  // namespace gpushare::client
