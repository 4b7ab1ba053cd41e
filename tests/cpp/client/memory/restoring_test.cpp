#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/client/runtime.h"

#include "tests/cpp/support/client_job_with_tensors.h"

namespace gpushare::client {
namespace {

using wire::LeaseState;

class Restoring : public JobWithTensors {
 protected:
  void TearDown() override {
    let_copies_go();
    JobWithTensors::TearDown();
  }
  // Of the tensors, answered.
  void forget_needs() {
    while (coordinator_->has<wire::Need>())
      coordinator_->wait_for<wire::Need>();
  }
  void use_activation() { EXPECT_TRUE(Tensor(*job_->allocator, mib(32), 9).is_intact()); }
  Bytes resident() { return job_->allocator->backed(); }
  void mark_late(const Tensor& tensor) {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.address());
    job_->allocator->mark_late({&address, 1});
  }
  void mark_all_late() {
    for (const Tensor& tensor : tensors_)
      mark_late(tensor);
  }
  Bytes to_restore() { return job_->residency->to_restore(); }
  void wait_until_back() {
    const auto deadline = std::chrono::steady_clock::now() + FakeCoordinator::kPatience;
    while (to_restore() > Bytes{0} || job_->runtime->has_late()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it did not come back";
      std::this_thread::yield();
    }
  }
  // All copies wait from now on, so that what is under way stays so.
  void hold_copies() {
    job_->mover.submit([held = held_.get_future().share()] {
      held.wait();
      return Status();
    });
    is_holding_ = true;
  }
  void let_copies_go() {
    if (std::exchange(is_holding_, false)) held_.set_value();
  }
  // An iteration of a job all of whose memory is late, and on its way back.
  void begin_with_late_memory(Bytes size = mib(4)) {
    park_with_tensors(size);
    mark_all_late();
    room_ = job_->allocator->room();
    for (wire::Released part = coordinator_->revoke(room_); part.more;)
      part = coordinator_->wait_for<wire::Released>();
    ASSERT_EQ(resident(), Bytes{0});
    // Room comes after the lease: before it, it would be used ahead of the lease.
    coordinator_->grant_lease();
    job_->begin();
    ASSERT_TRUE(job_->runtime->has_late());
    give_room_and_hold_copies(room_);
  }
  // The copies are held: it stays so.
  void wait_until_under_way() {
    const auto deadline = std::chrono::steady_clock::now() + FakeCoordinator::kPatience;
    while (resident() == Bytes{0}) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nothing is brought back";
      std::this_thread::yield();
    }
  }
  void give_room_and_hold_copies(Bytes room) {
    hold_copies();
    coordinator_->grant_room(room, 0);
    const auto deadline = std::chrono::steady_clock::now() + FakeCoordinator::kPatience;
    while (job_->allocator->room() < room) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "no room came";
      std::this_thread::yield();
    }
  }

  Bytes room_;

 private:
  std::promise<void> held_;
  bool is_holding_ = false;
};

TEST_F(Restoring, AParkedJobRestoresIntoRoomAheadOfItsLease) {
  park_with_tensors();
  const Bytes room = job_->allocator->room();
  const wire::Released released = coordinator_->revoke(room);
  const wire::LeasePage& page = coordinator_->page();
  coordinator_->grant_room(mib(8), 0);
  const auto deadline = std::chrono::steady_clock::now() + FakeCoordinator::kPatience;
  while (page.restored_total_bytes.load() < mib(8).value()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nothing came back";
    std::this_thread::yield();
  }
  EXPECT_EQ(resident(), mib(8));
  EXPECT_EQ(page.spilled_bytes.load(), (released.spilled - mib(8)).value());
  // It can be asked for it again.
  EXPECT_EQ(coordinator_->revoke(mib(4)).spilled, mib(4));
  coordinator_->grant_lease(coordinator_->grant_room(room - mib(4), 0));
  job_->begin();
  expect_intact();
}

TEST_F(Restoring, AnIterationBeginsBeforeLateMemoryIsBackAndAStepWaitsForIt) {
  begin_with_late_memory();
  EXPECT_EQ(job_->allocator->stats().spilled_bytes, mib(16));
  expect_intact();
  auto step = std::async(std::launch::async, [&] { job_->runtime->wait_for_late(); });
  EXPECT_EQ(step.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  let_copies_go();
  step.get();
  EXPECT_EQ(to_restore(), Bytes{0});
  EXPECT_FALSE(job_->runtime->has_late());
  expect_intact();
  EXPECT_EQ(resident(), mib(16));
  EXPECT_EQ(coordinator_->page().spilled_bytes.load(), 0);
  EXPECT_GT(job_->runtime->stats().moving, Nanos{0});
}

TEST_F(Restoring, LateMemoryComesBackWithoutAStep) {
  begin_with_late_memory(mib(40));
  let_copies_go();
  wait_until_back();
  expect_intact();
  EXPECT_FALSE(coordinator_->has<wire::Released>());
}

TEST_F(Restoring, ALeaseMayComeBeforeRoomForLateMemory) {
  park_with_tensors(mib(64));
  coordinator_->grant_lease();
  job_->begin();
  use_activation();
  coordinator_->ask();
  job_->end();
  coordinator_->wait_state(LeaseState::kIdle);
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  mark_late(tensors_[1]);
  coordinator_->revoke(job_->allocator->room() - mib(288));
  const Bytes room = job_->allocator->room();
  Bytes late;
  for (wire::Released part = coordinator_->revoke(room);;) {
    late += part.spilled_late;
    if (!part.more) break;
    part = coordinator_->wait_for<wire::Released>();
  }
  EXPECT_EQ(late, mib(64));
  forget_needs();
  // Ahead of the lease late memory leaves the iteration's room alone, however often it is looked.
  const std::uint64_t granted = coordinator_->grant_room(room - late, 0);
  while (resident() < mib(192))
    std::this_thread::yield();
  for (int i = 0; i < 3; ++i)
    coordinator_->revoke(Bytes{0});
  EXPECT_EQ(resident(), mib(192));
  coordinator_->grant_lease(granted);
  job_->begin();
  EXPECT_EQ(resident(), mib(192));
  EXPECT_TRUE(job_->runtime->has_late());
  use_activation();
  EXPECT_FALSE(coordinator_->has<wire::Need>());
  expect_intact();
  coordinator_->grant_room(room, 0);
  wait_until_back();
  EXPECT_FALSE(coordinator_->has<wire::Need>());
  expect_intact();
}

TEST_F(Restoring, AStepTakesWhatFollowsTheLeaseAsItComes) {
  park_with_tensors(mib(64));
  mark_late(tensors_[1]);
  for (wire::Released part = coordinator_->revoke(job_->allocator->room()); part.more;)
    part = coordinator_->wait_for<wire::Released>();
  forget_needs();
  coordinator_->grant_lease(coordinator_->grant_room(mib(192), 0));
  job_->begin();
  auto step = std::async(std::launch::async, [&] { job_->runtime->wait_for_late(); });
  for (Bytes room = mib(208); room <= mib(256); room += mib(16))
    coordinator_->grant_room(room, 0);
  step.get();
  EXPECT_EQ(to_restore(), Bytes{0});
  EXPECT_FALSE(coordinator_->has<wire::Need>());
  expect_intact();
}

TEST_F(Restoring, AStepAsksForRoomThatHasNotFollowedTheLease) {
  park_with_tensors(mib(64));
  mark_late(tensors_[1]);
  const Bytes room = job_->allocator->room();
  for (wire::Released part = coordinator_->revoke(room); part.more;)
    part = coordinator_->wait_for<wire::Released>();
  EXPECT_EQ(coordinator_->page().late_bytes.load(), mib(64).value());
  coordinator_->grant_lease(coordinator_->grant_room(mib(192), 0));
  job_->begin();
  auto step = std::async(std::launch::async, [&] { job_->runtime->wait_for_late(); });
  const auto need = coordinator_->wait_for<wire::Need>();
  EXPECT_EQ(need.bytes, mib(64));
  coordinator_->grant_room(room, need.n);
  step.get();
  EXPECT_EQ(to_restore(), Bytes{0});
  expect_intact();
}

TEST_F(Restoring, WhatIsNotLateIsThereWhenTheIterationBegins) {
  park_with_tensors();
  mark_late(tensors_[1]);
  const Bytes room = job_->allocator->room();
  coordinator_->revoke(room);
  coordinator_->grant_lease(coordinator_->grant_room(room, 0));
  job_->begin();
  EXPECT_GE(resident(), mib(12));
  wait_until_back();
  expect_intact();
}

TEST_F(Restoring, AJobWhoseIterationsAreMarkedHasAllItsMemoryInThem) {
  park_with_tensors();
  mark_all_late();
  job_->runtime->promise_iterations();
  const Bytes room = job_->allocator->room();
  EXPECT_EQ(coordinator_->revoke(room).spilled_late, Bytes{0});
  EXPECT_EQ(coordinator_->page().late_bytes.load(), 0);
  coordinator_->grant_lease(coordinator_->grant_room(room, 0));
  job_->begin();
  EXPECT_EQ(to_restore(), Bytes{0});
  EXPECT_FALSE(job_->runtime->has_late());
}

TEST_F(Restoring, ALeaseThatClosesBeforeLateMemoryIsBackLeavesItForTheNext) {
  begin_with_late_memory();
  coordinator_->ask();
  job_->end();
  coordinator_->wait_state(LeaseState::kIdle);
  EXPECT_FALSE(job_->runtime->has_late());
  expect_intact();
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  let_copies_go();
  coordinator_->revoke(room_);
  expect_intact();
  coordinator_->grant_lease(coordinator_->grant_room(room_, 0));
  job_->begin();
  job_->runtime->wait_for_late();
  EXPECT_EQ(to_restore(), Bytes{0});
  expect_intact();
}

TEST_F(Restoring, NoRoomOfLateMemoryIsGivenAway) {
  begin_with_late_memory(mib(40));
  wait_until_under_way();
  // Asked between two parts of what comes back.
  auto asked = std::async(std::launch::async, [&] { return coordinator_->revoke(room_); });
  EXPECT_EQ(asked.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  let_copies_go();
  const wire::Released released = asked.get();
  EXPECT_EQ(released.spilled, Bytes{0});
  EXPECT_EQ(released.bytes, room_ - mib(160));
  wait_until_back();
  expect_intact();
}

TEST_F(Restoring, AnAllocationWithoutRoomUsesWhatIsFreeInLateMemory) {
  start();
  for (unsigned char seed = 1; seed <= 8; ++seed)
    tensors_.emplace_back(*job_->allocator, mib(1), seed);
  ASSERT_TRUE(job_->runtime->register_job({}).ok());
  coordinator_->wait_for<wire::Register>();
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  mark_all_late();
  coordinator_->revoke(job_->allocator->room());
  tensors_.pop_back();
  while (coordinator_->has<wire::Need>())
    coordinator_->wait_for<wire::Need>();
  coordinator_->grant_lease();
  job_->begin();
  give_room_and_hold_copies(mib(8));
  auto taken = std::async(std::launch::async, [&] { return Tensor(*job_->allocator, mib(1), 9); });
  EXPECT_EQ(taken.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  let_copies_go();
  tensors_.push_back(taken.get());
  expect_intact();
  EXPECT_EQ(resident(), mib(8));
  EXPECT_FALSE(coordinator_->has<wire::Need>());
}

TEST_F(Restoring, AStepGoesOnWhereLateMemoryIsWhenItCannotComeBack) {
  start_in_room(mib(32), mib(8));
  register_and_park();
  mark_all_late();
  coordinator_->revoke(job_->allocator->room());
  coordinator_->grant_lease();  // without room
  job_->begin();
  auto denied = deny_next_need();
  job_->runtime->wait_for_late();
  denied.get();
  EXPECT_FALSE(job_->runtime->has_late()) << "not asked for again";
  EXPECT_EQ(to_restore(), mib(8));
  expect_intact();
  // What room there is then is for allocations.
  give_room_and_hold_copies(mib(4));
  EXPECT_TRUE(Tensor(*job_->allocator, mib(4), 9).is_intact());
  EXPECT_FALSE(coordinator_->has<wire::Need>());
}

}  // namespace
}  // namespace gpushare::client
