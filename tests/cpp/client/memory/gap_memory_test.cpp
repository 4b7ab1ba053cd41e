// Memory that may move although the main thread runs user code: in the gap, without a lease.
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tests/cpp/support/client_job_with_tensors.h"

namespace gpushare::client {
namespace {

using wire::LeaseState;

class GapMemory : public JobWithTensors {
 protected:
  void start(ClientConfig config = {}) {
    coordinator_ = std::make_unique<FakeCoordinator>(folder_.file("sock"));
    job_ = std::make_unique<JobWorld>(folder_, std::move(config));
    for (unsigned char seed = 1; seed <= 4; ++seed)
      tensors_.emplace_back(*job_->allocator, mib(4), seed);
    ASSERT_TRUE(job_->runtime->register_job({}).ok());
    coordinator_->wait_for<wire::Register>();
  }
  // The same, and no Need is granted but by the test.
  void start_without_room() {
    start_in_room(mib(64), mib(4));
    for (unsigned char seed = 2; seed <= 4; ++seed)
      tensors_.emplace_back(*job_->allocator, mib(4), seed);
    ASSERT_TRUE(job_->runtime->register_job({}).ok());
    coordinator_->wait_for<wire::Register>();
  }
  // One iteration, whose lease is taken back in the gap after it.
  void lose_lease_in_gap() {
    EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
    coordinator_->grant_lease();
    job_->begin();
    job_->end();
    EXPECT_EQ(coordinator_->ask(), wire::AskResult::kTakenInGap);
    coordinator_->wait_state(LeaseState::kIdle);
    static_cast<void>(job_->runtime->stats());  // takes the lock: the close has ended
  }
  bool is_movable() { return coordinator_->page().is_parked.load() != 0; }
  // All of it, by a Revoke that is answered whole.
  void spill_all() {
    const wire::Released released = coordinator_->revoke(coordinator_->room());
    EXPECT_GE(released.spilled, mib(16));
    EXPECT_EQ(released.reason, "");
  }
  void expect_refused() {
    const wire::Released released = coordinator_->revoke(coordinator_->room());
    EXPECT_EQ(released.spilled, Bytes{0});
    EXPECT_NE(released.reason, "");
  }
};

TEST_F(GapMemory, StaysWithoutAPromise) {
  start();
  lose_lease_in_gap();
  EXPECT_FALSE(is_movable());
  expect_refused();
  expect_intact();
}

TEST_F(GapMemory, MovesBetweenMarkedIterationsAndIsReadable) {
  start();
  job_->runtime->promise_iterations();
  lose_lease_in_gap();
  EXPECT_TRUE(is_movable());
  spill_all();
  expect_intact();
  auto entered = job_->begin_elsewhere();
  coordinator_->wait_state(LeaseState::kWanted);
  EXPECT_TRUE(is_movable());
  coordinator_->grant_lease();
  EXPECT_EQ(*entered.get(), GateResult::kEntered);
  EXPECT_FALSE(is_movable());
  EXPECT_EQ(job_->residency->to_restore(), Bytes{0});
  expect_intact();
}

TEST_F(GapMemory, MovesAfterParkUntilTheNextIteration) {
  start();
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator_->grant_lease();
  job_->begin();
  job_->end();
  EXPECT_FALSE(is_movable());
  job_->runtime->park();
  EXPECT_EQ(wire::load(coordinator_->page()).state(), LeaseState::kIdle);
  EXPECT_TRUE(is_movable());
  EXPECT_TRUE(coordinator_->has_rung());
  spill_all();
  expect_intact();
  lose_lease_in_gap();  // an iteration of its own
  EXPECT_FALSE(is_movable()) << "said for one gap";
}

TEST_F(GapMemory, ParkInAGapWhoseLeaseIsGoneTellsTheCoordinator) {
  start();
  lose_lease_in_gap();
  coordinator_->has_rung();
  job_->runtime->park();
  EXPECT_TRUE(is_movable());
  EXPECT_TRUE(coordinator_->has_rung());
  spill_all();
  expect_intact();
}

TEST_F(GapMemory, MovesWhenNothingBeganForLong) {
  ClientConfig config;
  config.idle_spill = millis(300);
  start(config);
  lose_lease_in_gap();
  coordinator_->wait_rung();
  for (int i = 0; i < 2000 && !is_movable(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(is_movable());
  coordinator_->wait_rung();
  spill_all();
  expect_intact();
}

// A notebook's cell whose last line called the model: the lease went by the idle rule.
TEST_F(GapMemory, MovesWhenAnIterationHasLostItsLeaseForLong) {
  ClientConfig config;
  config.idle_rule = millis(20);
  config.idle_spill = millis(300);
  start(std::move(config));
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator_->grant_lease();
  job_->begin();
  EXPECT_EQ(coordinator_->ask(), wire::AskResult::kAsked);
  // The thread sleeps meanwhile: to look all the time would be work.
  const auto wait_until = [](auto&& is_true) {
    while (!is_true())
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  wait_until([this] { return wire::load(coordinator_->page()).state() == LeaseState::kIdle; });
  EXPECT_FALSE(is_movable()) << "it may go on at once";
  wait_until([this] { return is_movable(); });
  spill_all();
  expect_intact();
  job_->end();  // it has gone on after all
  lose_lease_in_gap();
  expect_intact();
}

TEST_F(GapMemory, IsBroughtBackByHoldAndStaysUntilItEnds) {
  start();
  job_->runtime->promise_iterations();
  lose_lease_in_gap();
  spill_all();
  ASSERT_TRUE(job_->runtime->hold().ok());
  EXPECT_EQ(job_->residency->to_restore(), Bytes{0});
  EXPECT_FALSE(is_movable());
  expect_refused();
  ASSERT_TRUE(job_->runtime->hold().ok());
  job_->runtime->let_go();
  EXPECT_FALSE(is_movable()) << "held once more";
  coordinator_->has_rung();
  job_->runtime->let_go();
  EXPECT_TRUE(is_movable());
  EXPECT_TRUE(coordinator_->has_rung());
  spill_all();
  expect_intact();
}

// Who waits for that memory may count on the end of the hold, if the holder itself goes on.
TEST_F(GapMemory, IsSaidToBeHeldWhileTheHolderGoesOn) {
  start_without_room();
  job_->runtime->promise_iterations();
  lose_lease_in_gap();
  ASSERT_TRUE(job_->runtime->hold().ok());
  const auto is_held = [&] { return coordinator_->revoke(coordinator_->room()).held; };
  EXPECT_TRUE(is_held());
  auto others = std::async(std::launch::async, [&] { return job_->allocator->allocate(mib(24)); });
  wire::Need need = coordinator_->wait_for<wire::Need>();
  EXPECT_TRUE(is_held()) << "another thread waits for room";
  coordinator_->grant_room(mib(40), need.n);
  job_->allocator->free(others.get().value());
  auto holders = std::async(std::launch::async, [&] {
    job_->runtime->let_go();  // of the other thread's
    EXPECT_TRUE(job_->runtime->hold().ok());
    return job_->allocator->allocate(mib(80));
  });
  need = coordinator_->wait_for<wire::Need>();
  EXPECT_FALSE(is_held()) << "it waits for room itself";
  coordinator_->grant_room(mib(200), need.n);
  job_->allocator->free(holders.get().value());
  EXPECT_TRUE(is_held());
  job_->runtime->let_go();
  EXPECT_TRUE(is_movable());
}

TEST_F(GapMemory, IsHeldInTheGateToo) {
  start();
  ASSERT_TRUE(job_->runtime->hold().ok());
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  expect_refused();
  EXPECT_TRUE(coordinator_->revoke(mib(4)).held) << "so that it is asked again";
  job_->runtime->let_go();
  spill_all();
}

TEST_F(GapMemory, IsStillSaidToMoveToTheNextCoordinator) {
  start();
  job_->runtime->promise_iterations();
  lose_lease_in_gap();
  coordinator_.reset();
  coordinator_ = std::make_unique<FakeCoordinator>(folder_.file("sock"), FakeSettings{.epoch = 2});
  coordinator_->wait_for<wire::Register>();
  for (int i = 0; i < 2000 && !is_movable(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(is_movable());
}

// Two jobs whose memory comes back at once would else wait for each other's room.
TEST_F(GapMemory, GivesAgainWhatIsInPlaceWhileItsRestoreWaitsForRoom) {
  start_without_room();
  job_->runtime->promise_iterations();
  lose_lease_in_gap();
  spill_all();
  static_cast<void>(coordinator_->grant_room(mib(8), 0));
  auto holding = std::async(std::launch::async, [this] { return job_->runtime->hold(); });
  const auto need = coordinator_->wait_for<wire::Need>();
  const wire::Released released = coordinator_->revoke(mib(4));
  EXPECT_EQ(released.bytes, mib(4));
  EXPECT_FALSE(released.with_lease);
  EXPECT_EQ(released.need_n, need.n) << "it comes back with what the restore waits for";
  coordinator_->grant_room(need.bytes + released.bytes, need.n);
  EXPECT_TRUE(holding.get().ok());
  EXPECT_EQ(job_->runtime->stats().memory.spilled, Bytes{0});
  expect_intact();
  expect_refused();
}

// It was granted room for its child, and asked for it again at once, some thousand times.
TEST_F(GapMemory, DoesNotMoveWhileItComesBackForAForkedChild) {
  start_without_room();
  job_->runtime->promise_iterations();
  lose_lease_in_gap();
  spill_all();
  EXPECT_TRUE(is_movable());
  auto forking = std::async(std::launch::async, [this] {
    job_->runtime->before_fork();
    job_->runtime->after_fork_in_parent();
  });
  const auto need = coordinator_->wait_for<wire::Need>();
  EXPECT_FALSE(is_movable());
  coordinator_->grant_room(need.bytes, need.n);
  forking.get();
  EXPECT_EQ(job_->runtime->stats().memory.spilled, Bytes{0});
  EXPECT_TRUE(is_movable());
}

TEST_F(GapMemory, WhatAParkedJobGaveComesBackWithItsLease) {
  start();
  job_->runtime->promise_iterations();
  lose_lease_in_gap();
  const wire::Released released = coordinator_->revoke(coordinator_->room());
  EXPECT_TRUE(released.with_lease);
}

}  // namespace
}  // namespace gpushare::client
