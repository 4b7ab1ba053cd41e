#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/client_job_with_tensors.h"

namespace gpushare::client {
namespace {

using ::testing::HasSubstr;
using wire::LeaseState;

class Room : public JobWithTensors {
 protected:
  Bytes resident() { return job_->allocator->backed(); }
};

TEST_F(Room, AWaitEndsWhenASignalsHandlerRaises) {
  static std::atomic<bool> has_raised;
  has_raised = false;
  ClientConfig config;
  config.is_interrupted = [] { return has_raised.load(); };
  start({.grants_room = false}, config);
  ASSERT_TRUE(job_->runtime->attach().ok());
  has_raised = true;
  const Result<void*> block = job_->allocator->allocate(mib(4));
  ASSERT_FALSE(block.has_value());
  EXPECT_EQ(block.error().code(), StatusCode::kCancelled);
  // The answer comes all the same, and is room for the next one.
  coordinator_->wait_for<wire::Need>();
  coordinator_->grant_room(mib(64), 1);
  coordinator_->wait_for<wire::Consumed>();
  EXPECT_EQ(job_->allocator->room(), mib(64));
}

TEST_F(Room, AParkedJobSpillsNoMoreThanItMay) {
  park_with_tensors();
  const Bytes spare = job_->allocator->room() - resident();
  const wire::Released released = coordinator_->revoke(spare + mib(8), mib(4));
  EXPECT_EQ(released.spilled, mib(4));
  EXPECT_EQ(released.unplaced, spare + mib(8) - released.bytes);
  EXPECT_THAT(released.reason, HasSubstr("the rest is for other jobs"));
  EXPECT_EQ(coordinator_->page().spilled_bytes.load(), mib(4).value());
  const std::uint64_t n = coordinator_->grant_room(released.bytes, 0);
  coordinator_->grant_lease(n);
  job_->begin();
  expect_intact();
}

TEST_F(Room, AParkedJobSpillsAndSaysSoTruly) {
  park_with_tensors();
  const Bytes before = resident();
  const Bytes room = job_->allocator->room();
  const Bytes spare = room - before;
  const wire::Released released = coordinator_->revoke(spare + mib(8));
  EXPECT_EQ(released.bytes, spare + mib(8));
  EXPECT_EQ(released.dropped + released.spilled, before - resident());
  EXPECT_GT(released.spilled, Bytes{0});
  EXPECT_EQ(released.reason, "");
  EXPECT_EQ(job_->allocator->room(), room - released.bytes);
  EXPECT_LE(resident(), job_->allocator->room());
  wire::LeasePage& page = coordinator_->page();
  EXPECT_EQ(page.spilled_bytes.load(), released.spilled.value());
  EXPECT_EQ(page.resident_bytes.load(), resident().value());
  EXPECT_GE(page.need_bytes.load(), (resident() + released.spilled).value());
  // The lease comes with room; the gate brings everything back.
  const std::uint64_t n = coordinator_->grant_room(released.bytes, 0);
  coordinator_->grant_lease(n);
  job_->begin();
  expect_intact();
  EXPECT_EQ(page.restored_total_bytes.load(), released.spilled.value());
  EXPECT_EQ(page.spilled_bytes.load(), 0);
  EXPECT_EQ(job_->runtime->stats().memory.moved.restored, released.spilled);
}

TEST_F(Room, ASpillIsReleasedInParts) {
  park_with_tensors(mib(32));
  const Bytes room = job_->allocator->room();
  wire::Released part = coordinator_->revoke(room);
  EXPECT_TRUE(part.more);
  EXPECT_GE(part.bytes, alloc::Residency::kPartBytes);
  Bytes sum = part.bytes;
  while (part.more) {
    part = coordinator_->wait_for<wire::Released>();
    sum += part.bytes;
  }
  EXPECT_EQ(sum, room);
  EXPECT_EQ(resident(), Bytes{0});
  coordinator_->grant_lease(coordinator_->grant_room(room, 0));
  job_->begin();
  expect_intact();
}

TEST_F(Room, ARestoreWithoutRoomAsksForIt) {
  park_with_tensors();
  const wire::Released released = coordinator_->revoke(job_->allocator->room());
  EXPECT_EQ(resident(), Bytes{0});
  while (coordinator_->has<wire::Need>())
    coordinator_->wait_for<wire::Need>();
  coordinator_->grant_lease();  // no Grant before it
  job_->begin();
  expect_intact();
  EXPECT_GE(coordinator_->wait_for<wire::Need>().bytes, released.spilled);
}

TEST_F(Room, AJobInAnIterationGivesFreeMemoryOnly) {
  park_with_tensors();
  coordinator_->grant_lease();
  job_->begin();
  tensors_.pop_back();
  const Bytes before = resident();
  const Bytes spare = job_->allocator->room() - before;
  const wire::Released released = coordinator_->revoke(spare + mib(16));
  EXPECT_EQ(released.spilled, Bytes{0});
  EXPECT_GE(released.dropped, mib(4));
  EXPECT_EQ(released.bytes, spare + released.dropped);
  EXPECT_THAT(released.reason, HasSubstr("not parked"));
  expect_intact();
}

TEST_F(Room, AJobBeforeItsFirstGateIsNotParked) {
  start();
  tensors_.emplace_back(*job_->allocator, mib(8), 0x77);
  ASSERT_TRUE(job_->runtime->register_job({}).ok());
  const wire::Released released = coordinator_->revoke(gib(1));
  EXPECT_EQ(released.spilled, Bytes{0});
  EXPECT_THAT(released.reason, HasSubstr("not parked"));
  expect_intact();
}

TEST_F(Room, GivingUpBringsEverythingBackFirst) {
  park_with_tensors();
  coordinator_->revoke(job_->allocator->room());
  EXPECT_EQ(resident(), Bytes{0});
  job_->runtime->give_up();
  expect_intact();
  EXPECT_EQ(coordinator_->page().is_parked.load(), 0U);
  EXPECT_EQ(wire::load(coordinator_->page()).state(), LeaseState::kIdle);
}

TEST_F(Room, AtTheEndOfTheProcessNothingComesBack) {
  park_with_tensors();
  coordinator_->revoke(job_->allocator->room());
  job_->runtime->unregister_at_exit();
  EXPECT_EQ(resident(), Bytes{0});
  EXPECT_EQ(wire::load(coordinator_->page()).state(), LeaseState::kIdle);
  EXPECT_FALSE(job_->runtime->stats().is_registered);
}

TEST_F(Room, ARestoreThatFailsGivesTheLeaseBackAndCanBeTriedAgain) {
  start_in_room(mib(32), mib(8));
  register_and_park();
  coordinator_->revoke(job_->allocator->room());
  coordinator_->grant_lease();
  auto denied = deny_next_need();
  const Result<GateResult> failed = job_->runtime->begin_iteration(seconds(20));
  denied.get();
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(failed.error().message(), HasSubstr("job 2 holds all"));
  EXPECT_EQ(wire::load(coordinator_->page()).state(), LeaseState::kIdle);
  EXPECT_EQ(coordinator_->page().is_parked.load(), 0U);
  // Once more, with room.
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  const std::uint64_t n = coordinator_->grant_room(mib(64), 0);
  coordinator_->grant_lease(n);
  job_->begin();
  expect_intact();
}

TEST_F(Room, ADeniedRequestIsOutOfMemoryInTheCoordinatorsWords) {
  start({.grants_room = false});
  auto grown = std::async(std::launch::async, [&] { return job_->allocator->allocate(mib(8)); });
  const auto need = coordinator_->wait_for<wire::Need>();
  wire::Address of;
  of.job = JobId{7};
  coordinator_->send(wire::Denied{.of = of, .n = need.n, .reason = "job 2 holds 1.0 GiB"});
  const Result<void*> result = grown.get();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(result.error().message(), HasSubstr("job 2 holds 1.0 GiB"));
}

TEST_F(Room, LargeRequestsAskForNoMoreThanTheyNeed) {
  start();
  tensors_.emplace_back(*job_->allocator, mib(100), 0x42);
  const auto need = coordinator_->wait_for<wire::Need>();
  EXPECT_GE(need.bytes, mib(100));
  EXPECT_GE(need.like, need.bytes);
  EXPECT_EQ(need.like.value() % vm::kChunkBytes.value(), 0);
}

TEST_F(Room, VerifyMovesEverythingAndTellsNobody) {
  start();
  for (unsigned char seed = 1; seed <= 4; ++seed) {
    tensors_.emplace_back(*job_->allocator, mib(4), seed);
  }
  const Bytes room = job_->allocator->room();
  const Status status = job_->runtime->spill_and_restore();
  EXPECT_TRUE(status.ok()) << status.to_string();
  expect_intact();
  EXPECT_EQ(job_->allocator->room(), room);
  EXPECT_EQ(job_->allocator->route(), alloc::Route::kPrivate);
  EXPECT_GE(job_->runtime->stats().memory.moved.spilled, mib(16));
  EXPECT_EQ(job_->runtime->stats().memory.moved.restored,
            job_->runtime->stats().memory.moved.spilled);
  EXPECT_FALSE(coordinator_->has<wire::Released>());
}

TEST_F(Room, VerifyWorksUnmanaged) {
  job_ = std::make_unique<JobWorld>(folder_);
  tensors_.emplace_back(*job_->allocator, mib(6), 0x21);
  const Status status = job_->runtime->spill_and_restore();
  EXPECT_TRUE(status.ok()) << status.to_string();
  expect_intact();
  EXPECT_EQ(job_->allocator->room(), Bytes{INT64_MAX});
  EXPECT_GE(job_->runtime->stats().memory.moved.restored, mib(6));
}

TEST_F(Room, VerifySaysWhenTheHostTierIsTooSmall) {
  job_ = std::make_unique<JobWorld>(folder_);
  tensors_.emplace_back(*job_->allocator, mib(6), 0x21);
  job_->slab->set_budgets({.ram = mib(2), .file = {}});
  const Status status = job_->runtime->spill_and_restore();
  EXPECT_EQ(status.code(), StatusCode::kHostTierFull);
  expect_intact();
}

TEST_F(Room, VerifyIsRefusedInTheGate) {
  park_with_tensors();
  EXPECT_EQ(job_->runtime->spill_and_restore().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gpushare::client
