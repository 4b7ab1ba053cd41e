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
