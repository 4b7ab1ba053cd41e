// Revoke while a thread of the job waits for room: the job is as good as parked.
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/client_job_with_tensors.h"

namespace gpushare::client {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kMore = mib(100);

class StoppedForRoom : public JobWithTensors {
 protected:
  // Four tensors of private memory in 64 MiB of room.
  void start(ClientConfig config = {}) {
    start_in_room(mib(64), mib(4), std::move(config));
    for (unsigned char seed = 2; seed <= 4; ++seed)
      tensors_.emplace_back(*job_->allocator, mib(4), seed);
  }
  // Waits for room it does not have.
  std::future<Result<void*>> allocate_more() {
    return std::async(std::launch::async, [this] { return job_->allocator->allocate(kMore); });
  }
  Bytes spare() { return job_->allocator->room() - job_->allocator->backed(); }
  // Nothing but free room is given; the allocation gets what it asked and what was given.
  void expect_only_spare(std::future<Result<void*>> waiting, const wire::Need& need) {
    const Bytes before = job_->allocator->backed();
    const Bytes unused = spare();
    const wire::Released released = coordinator_->revoke(unused + mib(8));
    EXPECT_EQ(released.bytes, unused + released.dropped);
    EXPECT_EQ(released.dropped, Bytes{0});
    EXPECT_EQ(released.spilled, Bytes{0});
    EXPECT_THAT(released.reason, HasSubstr("not parked"));
    EXPECT_EQ(job_->allocator->backed(), before);
    EXPECT_EQ(job_->allocator->route(), alloc::Route::kPrivate);
    expect_intact();
    coordinator_->grant_room(need.bytes + released.bytes, need.n);
    finish(std::move(waiting));
    EXPECT_EQ(job_->runtime->stats().memory.moved.spilled, Bytes{0});
  }
  void finish(std::future<Result<void*>> waiting) {
    const Result<void*> data = waiting.get();
    ASSERT_TRUE(data.has_value()) << data.error().to_string();
    job_->allocator->free(*data);
  }
};

TEST_F(StoppedForRoom, SpillsAndBringsEverythingBackBeforeTheAllocationReturns) {
  start();
  std::vector<const void*> addresses;
  for (const Tensor& tensor : tensors_)
    addresses.push_back(tensor.address());
  auto waiting = allocate_more();
  const auto need = coordinator_->wait_for<wire::Need>();
  const Bytes before = job_->allocator->backed();
  const Bytes asked = spare() + mib(8);
  const wire::Released released = coordinator_->revoke(asked);
  EXPECT_EQ(released.bytes, asked);
  EXPECT_GE(released.spilled, mib(8));
  EXPECT_EQ(released.dropped + released.spilled, before - job_->allocator->backed());
  EXPECT_EQ(released.reason, "");
  EXPECT_LE(job_->allocator->backed(), job_->allocator->room());
  EXPECT_EQ(job_->allocator->route(), alloc::Route::kOutside);
  EXPECT_EQ(job_->runtime->stats().memory.moved.restored, Bytes{0});
  coordinator_->grant_room(need.bytes + released.bytes, need.n);
  finish(std::move(waiting));
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    EXPECT_EQ(tensors_[i].address(), addresses[i]);
  expect_intact();
  EXPECT_EQ(job_->allocator->route(), alloc::Route::kPrivate);
  EXPECT_EQ(job_->runtime->stats().memory.moved.restored, released.spilled);
  EXPECT_FALSE(coordinator_->has<wire::Need>());  // room for it came with the answer
}

// What left while one thread waits another one may need first. The two requests together must not
// be for it twice: that could be more than the device has.
TEST_F(StoppedForRoom, AHoldOfAnotherThreadAsksForWhatLeftAndTheAllocationNoMore) {
  start();
  auto waiting = allocate_more();
  const auto need = coordinator_->wait_for<wire::Need>();
  const wire::Released released = coordinator_->revoke(spare() + mib(8));
  EXPECT_EQ(released.need_n, need.n);
  auto holding = std::async(std::launch::async, [this] { return job_->runtime->hold(); });
  const auto again = coordinator_->wait_for<wire::Need>();
  EXPECT_EQ(again.n, need.n);
  EXPECT_EQ(again.bytes, need.bytes + released.bytes - released.spilled - released.dropped);
  const auto for_hold = coordinator_->wait_for<wire::Need>();
  EXPECT_LE(for_hold.bytes, released.spilled + released.dropped);
  const wire::Released more = coordinator_->revoke(mib(4));
  EXPECT_EQ(more.need_n, for_hold.n) << "the hold restores it, and not the allocation";
  coordinator_->grant_room(for_hold.bytes + more.bytes, for_hold.n);
  const Status held = holding.get();
  EXPECT_TRUE(held.ok()) << held.to_string();
  expect_intact();
  coordinator_->grant_room(again.bytes, need.n);
  finish(std::move(waiting));
  EXPECT_FALSE(coordinator_->has<wire::Need>());
  job_->runtime->let_go();
}

TEST_F(StoppedForRoom, ADeniedAllocationFailsAfterEverythingIsBack) {
  start();
  auto waiting = allocate_more();
  const auto need = coordinator_->wait_for<wire::Need>();
  const wire::Released released = coordinator_->revoke(job_->allocator->room());
  EXPECT_EQ(job_->allocator->backed(), Bytes{0});
  wire::Address of;
  of.job = JobId{7};
  coordinator_->send(wire::Denied{.of = of, .n = need.n, .reason = "job 2 holds all"});
  const auto for_restore = coordinator_->wait_for<wire::Need>();
  EXPECT_GE(for_restore.bytes, released.spilled);
  coordinator_->grant_room(for_restore.like, for_restore.n);
  const Result<void*> data = waiting.get();
  ASSERT_FALSE(data.has_value());
  EXPECT_THAT(data.error().message(), HasSubstr("job 2 holds all"));
  expect_intact();
  EXPECT_EQ(job_->allocator->route(), alloc::Route::kPrivate);
}

TEST_F(StoppedForRoom, OneOfSeveralThreadsOfAnOperationGivesNothing) {
  ClientConfig config;
  config.is_in_parallel_region = [] { return true; };
  start(std::move(config));
  auto waiting = allocate_more();
  const auto need = coordinator_->wait_for<wire::Need>();
  expect_only_spare(std::move(waiting), need);
}

TEST_F(StoppedForRoom, AJobThatAllocatesFromSeveralThreadsGivesNothing) {
  start();
  auto one = allocate_more();
  const auto first = coordinator_->wait_for<wire::Need>();
  auto other = allocate_more();
  const auto second = coordinator_->wait_for<wire::Need>();
  coordinator_->grant_room(second.bytes + kMore, second.n);
  coordinator_->grant_room(kMore, first.n);
  finish(std::move(one));
  finish(std::move(other));
  job_->allocator->empty_cache();
  coordinator_->revoke(spare());
  // Also later, when one of them waits alone.
  auto waiting = allocate_more();
  const auto need = coordinator_->wait_for<wire::Need>();
  expect_only_spare(std::move(waiting), need);
}

TEST_F(StoppedForRoom, AJobWithAnOpenLeaseGoesOnInIt) {
  start();
  ASSERT_TRUE(job_->runtime->register_job({}).ok());
  coordinator_->wait_for<wire::Register>();
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator_->grant_lease();
  job_->begin();
  auto waiting = allocate_more();
  const auto need = coordinator_->wait_for<wire::Need>();
  const wire::Released released = coordinator_->revoke(spare() + mib(8));
  EXPECT_GE(released.spilled, mib(8));
  EXPECT_FALSE(released.with_lease);
  coordinator_->grant_room(need.bytes + released.bytes, need.n);
  finish(std::move(waiting));
  expect_intact();
  EXPECT_EQ(job_->allocator->route(), alloc::Route::kPrivate);
  EXPECT_EQ(job_->runtime->stats().memory.moved.restored, released.spilled);
}

}  // namespace
}  // namespace gpushare::client
