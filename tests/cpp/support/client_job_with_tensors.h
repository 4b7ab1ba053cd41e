// A fixture: a job at a fake coordinator, and tensors of its that must stay what they are.
#pragma once

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpp/support/client_fake_coordinator.h"
#include "tests/cpp/support/client_job_world.h"

namespace gpushare::client {

class JobWithTensors : public ::testing::Test {
 protected:
  void start(FakeSettings settings = {}, ClientConfig config = {}) {
    coordinator_ = std::make_unique<FakeCoordinator>(folder_.file("sock"), settings);
    job_ = std::make_unique<JobWorld>(folder_, std::move(config));
  }
  // Four tensors of private memory, and the main thread waiting in the gate.
  void park_with_tensors(Bytes size = mib(4)) {
    start();
    for (unsigned char seed = 1; seed <= 4; ++seed) {
      tensors_.emplace_back(*job_->allocator, size, seed);
    }
    ASSERT_TRUE(job_->runtime->register_job({}).ok());
    coordinator_->wait_for<wire::Register>();
    EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  }
  void expect_intact() {
    for (const Tensor& tensor : tensors_)
      EXPECT_TRUE(tensor.is_intact());
  }
  void TearDown() override {
    tensors_.clear();
    job_.reset();
  }

  TestFolder folder_;
  std::unique_ptr<FakeCoordinator> coordinator_;
  std::unique_ptr<JobWorld> job_;
  std::vector<Tensor> tensors_;
};

}  // namespace gpushare::client
