#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpp/support/client_fake_coordinator.h"
#include "tests/cpp/support/client_job_world.h"

namespace gpushare::client {
namespace {

using wire::LeaseState;

class Reconnect : public ::testing::Test {
 protected:
  Reconnect() {
    ClientConfig config;
    config.connect_timeout = seconds(20);
    // A coordinator that seems to be there at once: the test makes the real one.
    config.daemon_path = "/bin/true";
    job_ = std::make_unique<JobWorld>(folder_, config_with_socket(config));
    start(1);
    EXPECT_TRUE(job_->runtime->register_job({.name = "gpt"}).ok());
    coordinator_->wait_for<wire::Register>();
  }
  ClientConfig config_with_socket(ClientConfig config) {
    config.socket_paths = {folder_.file("sock")};
    return config;
  }
  void start(std::uint64_t epoch, FakeSettings settings = {}) {
    settings.epoch = epoch;
    coordinator_ = std::make_unique<FakeCoordinator>(folder_.file("sock"), settings);
  }
  void kill() { coordinator_.reset(); }
  // Waits until the job uses the page of the coordinator that is there now.
  void wait_installed() {
    coordinator_->wait_for<wire::Register>();
    EXPECT_EQ(job_->runtime->explain(seconds(20)), "job 9 holds the device");
  }
  LeaseState state() { return wire::load(coordinator_->page()).state(); }
  void enter() {
    auto entered = job_->begin_elsewhere();
    coordinator_->wait_state(LeaseState::kWanted);
    coordinator_->grant_lease();
    EXPECT_TRUE(entered.get().has_value());
  }

  TestFolder folder_;
  std::unique_ptr<JobWorld> job_;
  std::unique_ptr<FakeCoordinator> coordinator_;
};

TEST_F(Reconnect, TheHolderGoesOnAndKeepsItsLease) {
  enter();
  const Tensor tensor(*job_->allocator, mib(6), 0x31);
  kill();
  job_->end();
  job_->begin();
  start(2);
  const auto hello = coordinator_->wait_for<wire::Hello>();
  EXPECT_EQ(hello.held_term, Term{1});
  EXPECT_EQ(hello.resident, job_->allocator->backed());
  wait_installed();
  EXPECT_EQ(state(), LeaseState::kOpenBusy);
  EXPECT_EQ(coordinator_->page().iterations.load(), 1U);
  job_->end();
  EXPECT_EQ(state(), LeaseState::kOpenGap);
  job_->begin();
  EXPECT_EQ(coordinator_->ask(), wire::AskResult::kAsked);
  job_->end();
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_EQ(job_->runtime->stats().reconnects, 1U);
  EXPECT_TRUE(tensor.is_intact());
}

TEST_F(Reconnect, WhatWasChangedMeanwhileIsSaidToTheNextCoordinator) {
  wire::Changed changed{.of = {.job = JobId{7}}, .changes = {}};
  changed.changes.priority = wire::Priority::kGuaranteed;
  changed.changes.memory_limit = mib(32);
  coordinator_->send(changed);
  changed.changes = {.is_paused = true};
  changed.by = 12;
  changed.changes.weight = 2.0;
  changed.changes.memory_limit = mib(64);
  changed.changes.deadline = millis(50);
  changed.changes.is_elastic = true;
  coordinator_->send(changed);
  EXPECT_EQ(job_->runtime->explain(seconds(20)), "job 9 holds the device");  // it was read
  kill();
  start(2);
  const auto wish = coordinator_->wait_for<wire::Register>();
  EXPECT_EQ(wish.settings.priority, wire::Priority::kGuaranteed);
  EXPECT_EQ(wish.settings.weight, 2.0);
  EXPECT_EQ(wish.settings.memory_limit, mib(64));
  EXPECT_EQ(wish.settings.deadline, millis(50));
  EXPECT_TRUE(wish.settings.is_elastic);
  EXPECT_EQ(wish.paused_by, std::optional<std::uint32_t>(12));
}

TEST_F(Reconnect, OnlyAHardLimitIsItsShareOfTheDevice) {
  const Bytes all = job_->runtime->share();
  ASSERT_GT(all, mib(32));
  const auto share_with = [&](const wire::Changes& changes) {
    coordinator_->send(wire::Changed{.of = {.job = JobId{7}}, .changes = changes});
    EXPECT_EQ(job_->runtime->explain(seconds(20)), "job 9 holds the device");  // it was read
    return job_->runtime->share();
  };
  EXPECT_EQ(share_with({.memory_limit = mib(32)}), mib(32));
  EXPECT_EQ(share_with({.is_elastic = true}), all);
  EXPECT_EQ(share_with({.is_elastic = false}), mib(32));
}

TEST_F(Reconnect, AJobInTheGapIsInTheGapAgain) {
  enter();
  job_->end();
  kill();
  start(2);
  EXPECT_EQ(coordinator_->wait_for<wire::Hello>().held_term, Term{1});
  wait_installed();
  EXPECT_EQ(state(), LeaseState::kOpenGap);
  EXPECT_EQ(coordinator_->ask(), wire::AskResult::kTakenInGap);
  coordinator_->wait_state(LeaseState::kIdle);
}

TEST_F(Reconnect, AWaiterWaitsAtTheNewOne) {
  auto entered = job_->begin_elsewhere();
  coordinator_->wait_state(LeaseState::kWanted);
  kill();
  start(2);
  EXPECT_EQ(coordinator_->wait_for<wire::Hello>().held_term, Term{});
  wait_installed();
  coordinator_->wait_state(LeaseState::kWanted);
  EXPECT_TRUE(coordinator_->has_rung());
  EXPECT_EQ(coordinator_->page().is_parked.load(), 1U);
  coordinator_->grant_lease();
  EXPECT_EQ(*entered.get(), GateResult::kEntered);
  EXPECT_EQ(state(), LeaseState::kOpenBusy);
}

TEST_F(Reconnect, ASpilledWaiterTellsTheTruth) {
  enter();
  const Tensor tensor(*job_->allocator, mib(6), 0x31);
  job_->runtime->close_lease(wire::BoundaryKind::kExplicit);
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator_->revoke(job_->allocator->room());
  kill();
  start(2);
  const auto hello = coordinator_->wait_for<wire::Hello>();
  EXPECT_EQ(hello.resident, Bytes{0});
  EXPECT_EQ(hello.spilled, mib(6));
  wait_installed();
  EXPECT_EQ(job_->num_tier_calls, 2) << "the new one may have other budgets";
  EXPECT_EQ(coordinator_->page().spilled_bytes.load(), mib(6).value());
  coordinator_->grant_lease();
  job_->begin();
  EXPECT_TRUE(tensor.is_intact());
}

TEST_F(Reconnect, TheNewOneHearsHowFarTheJobIs) {
  enter();
  for (int i = 0; i < 3; ++i) {
    job_->end();
    job_->begin();
  }
  kill();
  start(2);
  EXPECT_EQ(coordinator_->wait_for<wire::Register>().iterations_done, 3U);
}

TEST_F(Reconnect, ARequestForRoomIsSentAgain) {
  kill();
  start(2, {.grants_room = false});
  coordinator_->wait_for<wire::Register>();
  auto grown = std::async(std::launch::async, [&] { return job_->allocator->allocate(mib(8)); });
  const auto lost = coordinator_->wait_for<wire::Need>();
  kill();
  start(3, {.grants_room = false});
  const auto again = coordinator_->wait_for<wire::Need>();
  EXPECT_EQ(again.n, lost.n);
  EXPECT_EQ(again.bytes, lost.bytes);
  coordinator_->grant_room(again.like, again.n);
  const Result<void*> result = grown.get();
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  EXPECT_TRUE(job_->allocator->free(*result));
}

TEST_F(Reconnect, RoomBeyondWhatIsInUseIsGivenUp) {
  const Tensor tensor(*job_->allocator, mib(6), 0x31);
  EXPECT_GT(job_->allocator->room(), job_->allocator->backed());
  kill();
  start(2);
  wait_installed();
  EXPECT_EQ(job_->allocator->room(), job_->allocator->backed());
  EXPECT_EQ(job_->allocator->room(), coordinator_->room());
}

TEST_F(Reconnect, ALeaseThatWasBeingTakenIsClosed) {
  enter();
  job_->end();
  // Taken in the gap, and the coordinator dies before Close is sent.
  EXPECT_EQ(wire::ask(coordinator_->page(), Term{1}), wire::AskResult::kTakenInGap);
  kill();
  start(2);
  EXPECT_EQ(coordinator_->wait_for<wire::Hello>().held_term, Term{});
  wait_installed();
  EXPECT_EQ(state(), LeaseState::kIdle);
  EXPECT_EQ(job_->allocator->route(), alloc::Route::kOutside);
  enter();
}

TEST_F(Reconnect, ALeaseClosedWithoutACoordinatorStaysClosed) {
  enter();
  kill();
  job_->runtime->close_lease(wire::BoundaryKind::kException);
  start(2);
  wait_installed();
  EXPECT_EQ(state(), LeaseState::kIdle);
}

TEST_F(Reconnect, ALostConnectionAloneIsEnough) {
  enter();
  coordinator_->drop_connection();
  coordinator_->wait_for<wire::Hello>();  // the first one, of attach
  EXPECT_EQ(coordinator_->wait_for<wire::Hello>().held_term, Term{1});
  wait_installed();
  job_->end();
  EXPECT_EQ(state(), LeaseState::kOpenGap);
}

TEST_F(Reconnect, IteratesAcrossManyRestarts) {
  enter();
  for (std::uint64_t epoch = 2; epoch < 8; ++epoch) {
    kill();
    start(epoch);
    while (!coordinator_->has<wire::Register>()) {
      job_->end();
      job_->begin();
    }
    wait_installed();
    EXPECT_EQ(state(), LeaseState::kOpenBusy);
  }
  const JobStats stats = job_->runtime->stats();
  EXPECT_EQ(stats.reconnects, 6U);
  EXPECT_EQ(stats.leases, 1U);
  job_->end();
  EXPECT_EQ(coordinator_->page().iterations.load(), stats.iterations + 1);
}

TEST_F(Reconnect, ARefusalByTheNewOneMakesTheJobUnmanaged) {
  enter();
  const Tensor tensor(*job_->allocator, mib(6), 0x31);
  job_->runtime->close_lease(wire::BoundaryKind::kExplicit);
  auto entered = job_->begin_elsewhere();
  coordinator_->wait_state(LeaseState::kWanted);
  coordinator_->revoke(job_->allocator->room());
  EXPECT_EQ(job_->allocator->backed(), Bytes{0});
  kill();
  start(2, {.refuses_hello = "too old"});
  // The gate opens, with all memory back.
  EXPECT_EQ(*entered.get(), GateResult::kEntered);
  EXPECT_TRUE(tensor.is_intact());
  EXPECT_EQ(job_->allocator->route(), alloc::Route::kPrivate);
  EXPECT_EQ(job_->allocator->room(), Bytes{INT64_MAX});
  EXPECT_FALSE(job_->runtime->is_managed());
  EXPECT_EQ(job_->runtime->stats().job, JobId{});
  job_->end();
  job_->begin();
  EXPECT_EQ(job_->runtime->stats().iterations, 1U);
}

TEST(ReconnectWithoutProgram, ARequestForRoomIsGrantedWhenNobodyIsLeft) {
  const TestFolder folder;
  ClientConfig config;
  config.connect_timeout = seconds(20);
  auto coordinator =
      std::make_unique<FakeCoordinator>(folder.file("sock"), FakeSettings{.grants_room = false});
  JobWorld job(folder, config);
  auto grown = std::async(std::launch::async, [&] { return job.allocator->allocate(mib(8)); });
  coordinator->wait_for<wire::Need>();
  coordinator.reset();
  const Result<void*> result = grown.get();
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  EXPECT_FALSE(job.runtime->is_managed());
  EXPECT_TRUE(job.allocator->free(*result));
}

TEST(ReconnectWithoutProgram, AJobThatRequiresACoordinatorEndsAtTheGate) {
  const TestFolder folder;
  ClientConfig config;
  config.connect_timeout = millis(50);
  config.requires_coordinator = true;
  auto coordinator = std::make_unique<FakeCoordinator>(folder.file("sock"));
  JobWorld job(folder, config);
  ASSERT_TRUE(job.runtime->register_job({}).ok());
  auto entered = job.begin_elsewhere();
  coordinator->wait_state(LeaseState::kWanted);
  coordinator.reset();
  const Result<GateResult> result = entered.get();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(job.runtime->is_managed());
  EXPECT_EQ(job.runtime->begin_iteration(seconds(20)).error().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace gpushare::client
