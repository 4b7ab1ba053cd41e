#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/client_fake_coordinator.h"
#include "tests/cpp/support/client_job_world.h"

namespace gpushare::client {
namespace {

using ::testing::HasSubstr;
using wire::LeaseState;

class LeaseGate : public ::testing::Test {
 protected:
  LeaseGate() : coordinator_(folder_.file("sock")), job_(folder_) {
    EXPECT_TRUE(job_.runtime->register_job({.name = "gpt"}).ok());
    coordinator_.wait_for<wire::Register>();
  }

  // Through the gate with a fresh lease.
  Term enter() {
    auto entered = job_.begin_elsewhere();
    coordinator_.wait_state(LeaseState::kWanted);
    const Term term = coordinator_.grant_lease();
    const Result<GateResult> result = entered.get();
    EXPECT_TRUE(result.has_value()) << result.error().to_string();
    return term;
  }
  LeaseState state() { return wire::load(coordinator_.page()).state(); }

  TestFolder folder_;
  FakeCoordinator coordinator_;
  JobWorld job_;
};

TEST_F(LeaseGate, WaitsForAGrantAndOpens) {
  auto entered = job_.begin_elsewhere();
  coordinator_.wait_state(LeaseState::kWanted);
  coordinator_.wait_rung();
  EXPECT_EQ(coordinator_.page().is_parked.load(), 1U);
  EXPECT_EQ(job_.allocator->route(), alloc::Route::kOutside);
  EXPECT_FALSE(job_.runtime->is_in_iteration());
  coordinator_.grant_lease();
  EXPECT_EQ(*entered.get(), GateResult::kEntered);
  EXPECT_TRUE(job_.runtime->is_in_iteration());
  EXPECT_EQ(state(), LeaseState::kOpenBusy);
  EXPECT_EQ(coordinator_.page().is_parked.load(), 0U);
  EXPECT_GE(coordinator_.page().stall_ns.load(), 0);
  EXPECT_EQ(job_.allocator->route(), alloc::Route::kPrivate);
  EXPECT_EQ(job_.runtime->stats().leases, 1U);
}

TEST_F(LeaseGate, KeepsItsLeaseOverTheGapSilently) {
  const Term term = enter();
  coordinator_.has_rung();
  for (int i = 0; i < 5; ++i) {
    job_.end();
    EXPECT_EQ(state(), LeaseState::kOpenGap);
    job_.begin();
    EXPECT_EQ(state(), LeaseState::kOpenBusy);
  }
  EXPECT_FALSE(coordinator_.has_rung());
  EXPECT_EQ(wire::load(coordinator_.page()).term(), term);
  EXPECT_EQ(coordinator_.page().iterations.load(), 5U);
  EXPECT_EQ(job_.runtime->stats().leases, 1U);
}

TEST_F(LeaseGate, ASecondForwardInsideAnIterationPasses) {
  enter();
  job_.begin();
  job_.begin();
  job_.end();
  EXPECT_EQ(job_.runtime->stats().iterations, 1U);
}

TEST_F(LeaseGate, AnEndOutsideAnIterationIsNothing) {
  job_.end();
  enter();
  job_.end();
  job_.end();
  EXPECT_EQ(job_.runtime->stats().iterations, 1U);
  EXPECT_EQ(state(), LeaseState::kOpenGap);
}

TEST_F(LeaseGate, ClosesAtTheBoundaryWhenAsked) {
  enter();
  EXPECT_EQ(coordinator_.ask(), wire::AskResult::kAsked);
  coordinator_.has_rung();
  job_.end();
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_TRUE(coordinator_.has_rung());
  EXPECT_EQ(job_.allocator->route(), alloc::Route::kOutside);
  EXPECT_GT(job_.runtime->stats().held, Nanos{0});
}

TEST_F(LeaseGate, IsTakenBackInTheGapWithoutTheMainThread) {
  enter();
  job_.end();
  coordinator_.has_rung();
  EXPECT_EQ(coordinator_.ask(), wire::AskResult::kTakenInGap);
  coordinator_.wait_state(LeaseState::kIdle);
  static_cast<void>(job_.runtime->stats());  // takes the lock: the close has ended
  EXPECT_TRUE(coordinator_.has_rung());
  EXPECT_EQ(job_.allocator->route(), alloc::Route::kOutside);
  EXPECT_EQ(coordinator_.page().is_parked.load(), 0U);
  EXPECT_EQ(enter(), Term{2});
}

TEST_F(LeaseGate, ABeginThatMeetsTheClosingWaitsForTheNextLease) {
  enter();
  job_.end();
  // The word only: as if the Close message were still on its way.
  EXPECT_EQ(wire::ask(coordinator_.page(), Term{1}), wire::AskResult::kTakenInGap);
  auto entered = job_.begin_elsewhere();
  coordinator_.wait_state(LeaseState::kWanted);
  wire::Address of;
  of.job = JobId{7};
  coordinator_.send(wire::Close{.of = of, .term = Term{1}});
  coordinator_.grant_lease();
  EXPECT_EQ(*entered.get(), GateResult::kEntered);
  EXPECT_EQ(job_.runtime->explain(seconds(20)), "job 9 holds the device");  // Close was handled
  EXPECT_EQ(state(), LeaseState::kOpenBusy);
}

TEST_F(LeaseGate, KeepsItsPlaceWhenTimeIsUp) {
  const Result<GateResult> result = job_.runtime->begin_iteration(millis(1));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, GateResult::kTimedOut);
  EXPECT_EQ(state(), LeaseState::kWanted);
  EXPECT_EQ(coordinator_.page().is_parked.load(), 1U);
  coordinator_.grant_lease();
  job_.begin();
  EXPECT_TRUE(job_.runtime->is_in_iteration());
}

TEST_F(LeaseGate, GivesUpItsPlace) {
  EXPECT_EQ(*job_.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator_.has_rung();
  job_.runtime->give_up();
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_TRUE(coordinator_.has_rung());
  EXPECT_EQ(coordinator_.page().is_parked.load(), 0U);
  EXPECT_EQ(enter(), Term{1});
}

// As if a thread had called the model with a wrong argument while another one waits for the lease.
TEST_F(LeaseGate, KeepsItsPlaceWhenAnotherThreadFails) {
  auto waits =
      std::async(std::launch::async, [this] { return *job_.runtime->begin_iteration(millis(1)); });
  EXPECT_EQ(waits.get(), GateResult::kTimedOut);
  job_.runtime->close_lease(wire::BoundaryKind::kException);
  EXPECT_EQ(state(), LeaseState::kWanted);
  EXPECT_EQ(coordinator_.page().is_parked.load(), 1U);
}

TEST_F(LeaseGate, SaysWhetherItsLeaseIsAskedFor) {
  enter();
  EXPECT_FALSE(job_.runtime->is_asked());
  EXPECT_EQ(wire::ask(coordinator_.page(), Term{1}), wire::AskResult::kAsked);
  EXPECT_TRUE(job_.runtime->is_asked());
  job_.end();
  EXPECT_FALSE(job_.runtime->is_asked());
}

TEST_F(LeaseGate, GivesBackWhatWasGrantedWhileItGaveUp) {
  EXPECT_EQ(*job_.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator_.grant_lease();
  coordinator_.has_rung();
  job_.runtime->give_up();
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_TRUE(coordinator_.has_rung());
}

TEST_F(LeaseGate, WaitsForTheRoomThatTheLeaseCountsOn) {
  auto entered = job_.begin_elsewhere();
  coordinator_.wait_state(LeaseState::kWanted);
  coordinator_.grant_lease(1);
  // Granted, but Grant 1 has not arrived: not in yet, and still parked for the coordinator's eyes
  // or about to leave; only the Grant lets it in.
  EXPECT_EQ(entered.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(coordinator_.grant_room(mib(64), 0), 1U);
  EXPECT_EQ(*entered.get(), GateResult::kEntered);
  EXPECT_EQ(job_.allocator->room(), mib(64));
  EXPECT_EQ(coordinator_.wait_for<wire::Consumed>().n, 1U);
}

TEST_F(LeaseGate, TimesOutWhileTheGrantedRoomIsMissing) {
  EXPECT_EQ(*job_.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator_.grant_lease(1);
  EXPECT_EQ(*job_.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  EXPECT_FALSE(job_.runtime->is_in_iteration());
  coordinator_.grant_room(mib(64), 0);
  job_.begin();
}

TEST_F(LeaseGate, TwoThreadsWaitForOneLeaseAndShareIt) {
  EXPECT_EQ(*job_.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  // The first one has the gate, and its place in line, until it calls again.
  std::thread([&] {
    EXPECT_EQ(*job_.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  }).join();
  auto second = job_.begin_elsewhere();
  coordinator_.grant_lease();
  job_.begin();
  EXPECT_EQ(*second.get(), GateResult::kEntered);
  EXPECT_EQ(job_.runtime->stats().leases, 1U);
  // One of them ends, asked for the lease: both are back in line, the other when it begins again.
  EXPECT_EQ(coordinator_.ask(), wire::AskResult::kAsked);
  job_.end();
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_EQ(job_.runtime->stats().iterations, 1U);
}

TEST_F(LeaseGate, ASecondThreadJoinsTheFirstOnesIteration) {
  enter();
  job_.begin();  // the thread that entered has ended, so the iteration is this one's now
  std::thread([&] {
    EXPECT_EQ(*job_.runtime->begin_iteration(seconds(20)), GateResult::kEntered);
  }).join();
  EXPECT_EQ(state(), LeaseState::kOpenBusy);
  job_.begin();  // a second forward of the first thread
  job_.end();
  EXPECT_EQ(job_.runtime->stats().iterations, 1U);
}

TEST_F(LeaseGate, AnExceptionClosesTheLeaseInsideTheIteration) {
  enter();
  coordinator_.has_rung();
  job_.runtime->close_lease(wire::BoundaryKind::kException);
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_TRUE(coordinator_.has_rung());
  EXPECT_FALSE(job_.runtime->is_in_iteration());
  EXPECT_EQ(job_.runtime->stats().iterations, 0U);
  EXPECT_EQ(coordinator_.page().boundary_kind.load(),
            static_cast<std::uint32_t>(wire::BoundaryKind::kException));
  job_.end();  // the hook that follows all the same
  EXPECT_EQ(enter(), Term{2});
}

TEST_F(LeaseGate, ALeaseCanBeGivenBackInTheGap) {
  enter();
  job_.end();
  job_.runtime->close_lease(wire::BoundaryKind::kExplicit);
  EXPECT_EQ(state(), LeaseState::kIdle);
  job_.runtime->close_lease(wire::BoundaryKind::kExplicit);
  EXPECT_EQ(state(), LeaseState::kIdle);
}

TEST_F(LeaseGate, StatsSayHowTheTimeWent) {
  enter();
  job_.end();
  const JobStats stats = job_.runtime->stats();
  EXPECT_EQ(stats.lease_state, "kOpenGap");
  EXPECT_EQ(stats.term, Term{1});
  EXPECT_EQ(stats.iterations, 1U);
  EXPECT_GT(stats.busy, Nanos{0});
  EXPECT_GT(stats.waited, Nanos{0});
  EXPECT_GE(stats.moving, Nanos{0});
  EXPECT_GE(stats.held, stats.busy);
}

TEST_F(LeaseGate, EndsWithAThreadInTheGateOfAnotherProcessLife) {
  // The destructor must not wait for a lease that never comes.
  EXPECT_EQ(*job_.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
}

TEST(IdleRuleInTheRuntime, ClosesALeaseThatNobodyUses) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  ClientConfig config;
  config.idle_rule = millis(20);
  JobWorld job(folder, config);
  ASSERT_TRUE(job.runtime->register_job({}).ok());
  coordinator.wait_for<wire::Register>();
  EXPECT_EQ(*job.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator.grant_lease();
  job.begin();
  EXPECT_EQ(coordinator.ask(), wire::AskResult::kAsked);
  {
    // Waits without a spinning thread: that would be work.
    auto& page = coordinator.page();
    while (wire::load(page).state() != LeaseState::kIdle) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  EXPECT_EQ(coordinator.page().boundary_kind.load(),
            static_cast<std::uint32_t>(wire::BoundaryKind::kIdleRule));
  EXPECT_EQ(coordinator.page().is_parked.load(), 0U);
  // The iteration that wakes up again is counted, and the next one waits for a lease.
  job.end();
  EXPECT_EQ(*job.runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
}

}  // namespace
}  // namespace gpushare::client
