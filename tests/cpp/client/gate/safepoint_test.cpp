// Safepoints: the lease is given up inside an iteration, with all memory where it is.
#include <future>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "tests/cpp/support/client_fake_coordinator.h"
#include "tests/cpp/support/client_job_world.h"

namespace gpushare::client {
namespace {

using wire::LeaseState;

class SafepointTest : public ::testing::Test {
 protected:
  SafepointTest() : coordinator_(folder_.file("sock")), job_(folder_) {
    EXPECT_TRUE(job_.runtime->register_job({.name = "gpt"}).ok());
    coordinator_.wait_for<wire::Register>();
    auto entered = job_.begin_elsewhere();
    coordinator_.wait_state(LeaseState::kWanted);
    term_ = coordinator_.grant_lease();
    EXPECT_TRUE(entered.get().has_value());
    coordinator_.has_rung();
  }

  void ask_inside() { wire::ask_inside(coordinator_.page(), term_); }
  // As autograd's engine does: the thread that began the iteration is another one.
  GateResult stop(Nanos timeout = millis(1)) {
    return job_.runtime->safepoint(Safepoint::kBackward, timeout);
  }
  LeaseState state() { return wire::load(coordinator_.page()).state(); }

  TestFolder folder_;
  FakeCoordinator coordinator_;
  JobWorld job_;
  Term term_;
};

TEST_F(SafepointTest, IsNothingWhileNobodyAsks) {
  EXPECT_FALSE(job_.runtime->is_asked_inside());
  EXPECT_EQ(stop(), GateResult::kEntered);
  EXPECT_EQ(coordinator_.ask(), wire::AskResult::kAsked);
  EXPECT_FALSE(job_.runtime->is_asked_inside());
  EXPECT_EQ(stop(), GateResult::kEntered);
  EXPECT_EQ(state(), LeaseState::kOpenBusy);
  EXPECT_EQ(job_.runtime->stats().interruptions, 0U);
}

TEST_F(SafepointTest, GivesTheLeaseUpAndKeepsItsMemory) {
  ask_inside();
  EXPECT_TRUE(job_.runtime->is_asked_inside());
  EXPECT_EQ(stop(), GateResult::kTimedOut);
  EXPECT_EQ(state(), LeaseState::kWanted);
  EXPECT_TRUE(coordinator_.has_rung());
  EXPECT_EQ(coordinator_.page().is_inside.load(), 1U);
  EXPECT_EQ(coordinator_.page().is_parked.load(), 0U);
  EXPECT_EQ(job_.allocator->route(), alloc::Route::kPrivate);
  EXPECT_TRUE(job_.runtime->is_in_iteration());
  coordinator_.grant_lease();
  EXPECT_EQ(stop(seconds(20)), GateResult::kEntered);
  EXPECT_EQ(state(), LeaseState::kOpenBusy);
  EXPECT_EQ(coordinator_.page().is_inside.load(), 0U);
  EXPECT_EQ(job_.runtime->stats().interruptions, 1U);
  EXPECT_EQ(job_.runtime->stats().leases, 1U);
  // An ask of the lease before says nothing of this one.
  EXPECT_FALSE(job_.runtime->is_asked_inside());
  job_.end();
  EXPECT_EQ(job_.runtime->stats().iterations, 1U);
  EXPECT_EQ(state(), LeaseState::kOpenGap);
}

TEST_F(SafepointTest, GivesNothingAwayWhileItWaits) {
  const Tensor tensor(*job_.allocator, mib(4), 1);
  ask_inside();
  EXPECT_EQ(stop(), GateResult::kTimedOut);
  EXPECT_EQ(coordinator_.revoke(mib(4)).spilled, Bytes{0});
  coordinator_.grant_lease();
  EXPECT_EQ(stop(seconds(20)), GateResult::kEntered);
  EXPECT_EQ(job_.runtime->stats().memory.spilled, Bytes{0});
  EXPECT_TRUE(tensor.is_intact());
}

TEST_F(SafepointTest, IsNoTimeOfTheIteration) {
  ask_inside();
  const Nanos before{coordinator_.page().changed_ns.load()};
  EXPECT_EQ(stop(millis(30)), GateResult::kTimedOut);
  coordinator_.grant_lease();
  EXPECT_EQ(stop(seconds(20)), GateResult::kEntered);
  // As if it had begun so much later.
  EXPECT_GE(Nanos{coordinator_.page().changed_ns.load()} - before, millis(30));
  EXPECT_GE(job_.runtime->stats().waited, millis(30));
  const Nanos began{coordinator_.page().changed_ns.load()};
  job_.end();
  const Nanos ended{coordinator_.page().changed_ns.load()};
  EXPECT_EQ(Nanos{coordinator_.page().busy_ns.load()}, ended - began);
}

TEST_F(SafepointTest, IsPassedWhileMemoryIsHeld) {
  ASSERT_TRUE(job_.runtime->hold().ok());
  ask_inside();
  EXPECT_EQ(stop(), GateResult::kEntered);
  job_.runtime->let_go();
  EXPECT_EQ(stop(), GateResult::kTimedOut);
  coordinator_.grant_lease();
  EXPECT_EQ(stop(seconds(20)), GateResult::kEntered);
}

TEST_F(SafepointTest, IsPassedOutsideAnIteration) {
  ask_inside();
  job_.end();
  EXPECT_FALSE(job_.runtime->is_asked_inside());
  EXPECT_EQ(stop(), GateResult::kEntered);
  EXPECT_EQ(state(), LeaseState::kIdle);  // it closed at its boundary
}

TEST_F(SafepointTest, BrokenOffIsClosedAsAtABoundary) {
  ask_inside();
  EXPECT_EQ(stop(), GateResult::kTimedOut);
  coordinator_.has_rung();
  EXPECT_TRUE(job_.runtime->leave_safepoint());
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_TRUE(coordinator_.has_rung());
  EXPECT_EQ(coordinator_.page().is_inside.load(), 0U);
  EXPECT_EQ(job_.allocator->route(), alloc::Route::kOutside);
  job_.runtime->close_lease(wire::BoundaryKind::kException);
  EXPECT_FALSE(job_.runtime->is_in_iteration());
  auto entered = job_.begin_elsewhere();
  coordinator_.wait_state(LeaseState::kWanted);
  EXPECT_EQ(coordinator_.page().is_parked.load(), 1U);
  coordinator_.grant_lease();
  EXPECT_EQ(*entered.get(), GateResult::kEntered);
}

TEST_F(SafepointTest, TwoThreadsOfOneIterationGoOnTogether) {
  ask_inside();
  EXPECT_EQ(stop(), GateResult::kTimedOut);
  auto other = std::async(std::launch::async, [&] { return stop(seconds(20)); });
  coordinator_.grant_lease();
  EXPECT_EQ(stop(seconds(20)), GateResult::kEntered);
  EXPECT_EQ(other.get(), GateResult::kEntered);
  EXPECT_EQ(job_.runtime->stats().interruptions, 1U);
}

TEST_F(SafepointTest, IsPassedByAThreadThatDoesNotIterate) {
  ask_inside();
  EXPECT_FALSE(job_.runtime->is_in_iteration_here(Safepoint::kForward));
  EXPECT_EQ(job_.runtime->safepoint(Safepoint::kForward, millis(1)), GateResult::kEntered);
  EXPECT_EQ(state(), LeaseState::kOpenBusy);
  EXPECT_EQ(job_.runtime->stats().interruptions, 0U);
}

TEST_F(SafepointTest, IsOfTheThreadThatIterates) {
  job_.end();
  job_.begin();
  ask_inside();
  EXPECT_TRUE(job_.runtime->is_in_iteration_here(Safepoint::kForward));
  EXPECT_EQ(job_.runtime->safepoint(Safepoint::kForward, millis(1)), GateResult::kTimedOut);
  EXPECT_EQ(state(), LeaseState::kWanted);
  coordinator_.grant_lease();
  EXPECT_EQ(job_.runtime->safepoint(Safepoint::kForward, seconds(20)), GateResult::kEntered);
}

// Nobody would come to its boundary.
TEST_F(SafepointTest, IsGivenUpWhenTheIterationEndsElsewhere) {
  ask_inside();
  EXPECT_EQ(stop(), GateResult::kTimedOut);
  job_.end();
  EXPECT_EQ(stop(seconds(20)), GateResult::kEntered);
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_EQ(coordinator_.page().is_inside.load(), 0U);
  EXPECT_EQ(job_.allocator->route(), alloc::Route::kOutside);
}

TEST_F(SafepointTest, IsClosedIfItIsGrantedAfterTheIterationEnded) {
  ask_inside();
  EXPECT_EQ(stop(), GateResult::kTimedOut);
  job_.end();
  coordinator_.grant_lease();
  EXPECT_EQ(stop(seconds(20)), GateResult::kEntered);
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_EQ(coordinator_.page().is_inside.load(), 0U);
}

TEST_F(SafepointTest, IsGivenUpWhenTheNextIterationBegins) {
  ask_inside();
  EXPECT_EQ(stop(), GateResult::kTimedOut);
  job_.end();
  auto entered = job_.begin_elsewhere();
  while (coordinator_.page().is_parked.load() == 0U)
    std::this_thread::yield();
  EXPECT_EQ(coordinator_.page().is_inside.load(), 0U);
  EXPECT_EQ(stop(seconds(20)), GateResult::kEntered);
  coordinator_.wait_state(LeaseState::kWanted);
  coordinator_.grant_lease();
  EXPECT_EQ(*entered.get(), GateResult::kEntered);
  EXPECT_EQ(state(), LeaseState::kOpenBusy);
}

TEST(SafepointWithoutCoordinator, IsToldToTheNextOne) {
  TestFolder folder;
  auto coordinator = std::make_unique<FakeCoordinator>(folder.file("sock"));
  JobWorld job(folder);
  ASSERT_TRUE(job.runtime->register_job({.name = "gpt"}).ok());
  coordinator->wait_for<wire::Register>();
  auto entered = job.begin_elsewhere();
  coordinator->wait_state(LeaseState::kWanted);
  const Term term = coordinator->grant_lease();
  ASSERT_TRUE(entered.get().has_value());
  wire::ask_inside(coordinator->page(), term);
  ASSERT_EQ(job.runtime->safepoint(Safepoint::kBackward, millis(1)), GateResult::kTimedOut);
  coordinator.reset();
  coordinator = std::make_unique<FakeCoordinator>(folder.file("sock"), FakeSettings{.epoch = 2});
  EXPECT_EQ(coordinator->wait_for<wire::Hello>().held_term, Term{0});
  coordinator->wait_for<wire::Register>();
  coordinator->wait_state(LeaseState::kWanted);
  EXPECT_EQ(coordinator->page().is_inside.load(), 1U);
  EXPECT_EQ(coordinator->page().is_parked.load(), 0U);
  coordinator->grant_lease();
  EXPECT_EQ(job.runtime->safepoint(Safepoint::kBackward, seconds(20)), GateResult::kEntered);
  EXPECT_EQ(coordinator->page().is_inside.load(), 0U);
  EXPECT_TRUE(job.runtime->is_in_iteration());
}

TEST(SafepointOfAGang, IsPassed) {
  TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  ASSERT_TRUE(job.runtime->register_job({.name = "gpt", .gang = "g", .rank = 0, .ranks = 2}).ok());
  coordinator.wait_for<wire::Register>();
  auto entered = job.begin_elsewhere();
  coordinator.wait_state(LeaseState::kWanted);
  const Term term = coordinator.grant_lease();
  ASSERT_TRUE(entered.get().has_value());
  wire::ask_inside(coordinator.page(), term);
  EXPECT_EQ(job.runtime->safepoint(Safepoint::kBackward, millis(1)), GateResult::kEntered);
}

}  // namespace
}  // namespace gpushare::client
