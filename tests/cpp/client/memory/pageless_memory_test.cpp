// Memory of a process that has no iterations: not yet, or not any more.
#include <chrono>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tests/cpp/support/client_job_with_tensors.h"

namespace gpushare::client {
namespace {

class PagelessMemory : public JobWithTensors {
 protected:
  void start_quiet() {
    ClientConfig config;
    config.idle_spill = millis(200);
    start({}, std::move(config));
    for (unsigned char seed = 1; seed <= 4; ++seed)
      tensors_.emplace_back(*job_->allocator, mib(4), seed);
  }
  // Asks for all of its memory until it gives.
  wire::Released revoke_until_given() {
    wire::Released released = coordinator_->revoke(coordinator_->room());
    while (released.held) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      released = coordinator_->revoke(coordinator_->room());
    }
    return released;
  }
};

TEST_F(PagelessMemory, LeavesAProcessThatDoesNothingAndComesBackAtItsFirstIteration) {
  start_quiet();
  const wire::Released first = coordinator_->revoke(coordinator_->room());
  EXPECT_EQ(first.spilled, Bytes{0});
  EXPECT_TRUE(first.held) << "so that it is asked again";
  const wire::Released released = revoke_until_given();
  EXPECT_GE(released.spilled, mib(16));
  EXPECT_TRUE(released.with_lease);
  expect_intact();
  ASSERT_TRUE(job_->runtime->register_job({}).ok());
  EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  coordinator_->grant_lease();
  job_->begin();
  EXPECT_EQ(job_->residency->to_restore(), Bytes{0});
  expect_intact();
}

TEST_F(PagelessMemory, StaysWhileTheProcessAllocates) {
  start_quiet();
  for (int i = 0; i < 10; ++i) {
    const Tensor passing(*job_->allocator, mib(1), 9);
    EXPECT_TRUE(coordinator_->revoke(coordinator_->room()).held);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_GE(revoke_until_given().spilled, mib(16));
  expect_intact();
}

TEST_F(PagelessMemory, StaysWhereItIsHeld) {
  start_quiet();
  ASSERT_TRUE(job_->runtime->hold().ok());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(coordinator_->revoke(coordinator_->room()).spilled, Bytes{0});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  job_->runtime->let_go();
  EXPECT_GE(revoke_until_given().spilled, mib(16));
}

TEST_F(PagelessMemory, LeavesAfterTheLastIteration) {
  start_quiet();
  ASSERT_TRUE(job_->runtime->register_job({}).ok());
  job_->runtime->unregister_job();
  EXPECT_GE(revoke_until_given().spilled, mib(16));
  tensors_.emplace_back(*job_->allocator, mib(4), 5);  // it goes on all the same
  expect_intact();
}

}  // namespace
}  // namespace gpushare::client
