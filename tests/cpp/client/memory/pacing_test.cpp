// A job that keeps to the transfer budget: what it copies while another computes, and nobody waits.
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "csrc/client/runtime.h"

#include "tests/cpp/support/client_job_with_tensors.h"

namespace gpushare::client {
namespace {

using wire::LeaseState;

class Pacing : public JobWithTensors {
 protected:
  // At this rate the first chunk goes, and the second would in 24 days.
  void limit() { coordinator_->page().transfer_rate = 1; }
  void lift() { coordinator_->page().transfer_rate = 0; }
  void wait_until(const std::function<bool()>& is_so, const std::string& what) {
    const auto deadline = std::chrono::steady_clock::now() + FakeCoordinator::kPatience;
    while (!is_so()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << what;
      std::this_thread::yield();
    }
  }
  void wait_held_back() {
    wait_until([this] { return coordinator_->page().is_held_back.load() != 0; }, "not held back");
  }
  Bytes to_restore() { return job_->residency->to_restore(); }
  Bytes resident() { return job_->allocator->backed(); }
  // In the gate, all its memory away, and room for all of it, which it may fill at the rate.
  void restore_ahead_held_back() {
    park_with_tensors();
    room_ = job_->allocator->room();
    coordinator_->revoke(room_);
    limit();
    coordinator_->grant_room(room_, 0);
    wait_held_back();
    EXPECT_EQ(to_restore(), mib(14)) << "one chunk goes at once";
  }
  // In the gate, and asked for all of its memory, which it may give at the rate.
  void spill_held_back() {
    park_with_tensors();
    room_ = job_->allocator->room();
    limit();
    wire::Address of;
    of.job = JobId{7};
    coordinator_->send(wire::Revoke{
        .of = of, .n = kRevoke, .bytes = room_, .most_ram = gib(1), .most_file = Bytes{0}});
    wait_held_back();
    EXPECT_EQ(to_restore(), mib(2)) << "one chunk goes at once";
    EXPECT_FALSE(coordinator_->has<wire::Released>());
  }
  void expect_all_given() {
    const auto released = coordinator_->wait_for<wire::Released>();
    EXPECT_EQ(released.n, kRevoke);
    EXPECT_EQ(released.bytes, room_);
    EXPECT_EQ(released.spilled, mib(16));
    EXPECT_EQ(released.reason, "");
    EXPECT_FALSE(released.more);
    EXPECT_EQ(resident(), Bytes{0});
    expect_intact();
  }

  static constexpr std::uint64_t kRevoke = 1000;
  Bytes room_;
};

TEST_F(Pacing, RoomIsNotAskedForIfItIsFreeWhileMemoryIsGivenUp) {
  spill_held_back();
  const Status status = job_->runtime->grow(
      {.bytes = mib(2), .like = mib(2), .room = {}, .patience = alloc::Patience::kOnlyFree});
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(status.message(), "memory of this job is being given to others");
  lift();
  expect_all_given();
}

TEST_F(Pacing, WhatIsRestoredAheadGoesOnAtOnceWhenTheRateIsLifted) {
  restore_ahead_held_back();
  expect_intact();
  lift();
  wait_until([this] { return to_restore() == Bytes{0}; }, "it did not come back");
  wait_until([this] { return coordinator_->page().is_held_back.load() == 0; }, "still held back");
  expect_intact();
}

TEST_F(Pacing, ALeaseBringsAllBackWhateverTheRate) {
  restore_ahead_held_back();
  coordinator_->grant_lease();
  job_->begin();
  EXPECT_EQ(to_restore(), Bytes{0});
  expect_intact();
}

TEST_F(Pacing, LateMemoryOfAnOpenLeaseIsNotHeldBack) {
  restore_ahead_held_back();
  for (const Tensor& tensor : tensors_) {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.address());
    job_->allocator->mark_late({&address, 1});
  }
  coordinator_->grant_lease();
  job_->begin();
  wait_until([this] { return to_restore() == Bytes{0}; }, "it did not come back");
  expect_intact();
}

TEST_F(Pacing, ARevokeIsAnsweredWhileARestoreIsHeldBack) {
  restore_ahead_held_back();
  const wire::Released released = coordinator_->revoke(room_ - mib(2));
  EXPECT_EQ(released.bytes, room_ - mib(2)) << "room that nothing had filled yet";
  EXPECT_EQ(released.spilled, Bytes{0});
  expect_intact();
}

TEST_F(Pacing, WhatIsSpilledGoesOnAtOnceWhenTheRateIsLifted) {
  spill_held_back();
  expect_intact();
  lift();
  expect_all_given();
}

TEST_F(Pacing, WhatNeedsNoCopyIsGivenAtOnce) {
  park_with_tensors();
  limit();
  tensors_.clear();
  const Bytes room = job_->allocator->room();
  const wire::Released released = coordinator_->revoke(room);
  EXPECT_EQ(released.bytes, room);
  EXPECT_EQ(released.spilled, Bytes{0});
}

TEST_F(Pacing, TheHostTiersBudgetIsThatOfAllPortions) {
  park_with_tensors();
  coordinator_->page().transfer_rate = mib(100).value();
  const Bytes room = job_->allocator->room();
  const wire::Released released = coordinator_->revoke(room, mib(6));
  EXPECT_EQ(released.spilled, mib(6));
  EXPECT_EQ(released.bytes, room - mib(10));
  EXPECT_EQ(released.unplaced, mib(10));
  EXPECT_NE(released.reason, "");
  expect_intact();
}

TEST_F(Pacing, AMessageIsNotKeptWaitingByASpill) {
  spill_held_back();
  EXPECT_EQ(job_->runtime->explain(seconds(20)), "job 9 holds the device");
  expect_all_given();
}

TEST_F(Pacing, AThreadThatNeedsItsMemoryDoesNotWaitForTheRate) {
  spill_held_back();
  auto left = std::async(std::launch::async, [this] { job_->runtime->give_up(); });
  EXPECT_EQ(coordinator_->wait_for<wire::Released>().spilled, mib(16));
  left.get();
  EXPECT_EQ(to_restore(), Bytes{0});
  expect_intact();
}

TEST_F(Pacing, ACoordinatorThatDiesLiftsTheRate) {
  spill_held_back();
  coordinator_.reset();
  coordinator_ = std::make_unique<FakeCoordinator>(folder_.file("sock"));
  const auto hello = coordinator_->wait_for<wire::Hello>();
  EXPECT_EQ(hello.spilled, mib(16)) << "all of it went before it looked for another";
  coordinator_->wait_for<wire::Register>();
  expect_intact();
}

TEST_F(Pacing, TheEndOfTheProcessDoesNotWaitForTheRate) {
  spill_held_back();
  job_->runtime.reset();
  EXPECT_EQ(to_restore(), mib(16));
  expect_intact();
}

}  // namespace
}  // namespace gpushare::client
