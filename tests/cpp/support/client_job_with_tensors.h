// A fixture: a job at a fake coordinator, and tensors of its that must stay what they are.
#pragma once

#include <future>
#include <memory>
#include <utility>
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
  // The same, with `room` for a tensor of `size` and more, and from then on none but by the test.
  void start_in_room(Bytes room, Bytes size, ClientConfig config = {}) {
    start({.grants_room = false}, std::move(config));
    auto first =
        std::async(std::launch::async, [&] { tensors_.emplace_back(*job_->allocator, size, 1); });
    coordinator_->grant_room(room, coordinator_->wait_for<wire::Need>().n);
    first.get();
  }
  // Denies the next Need, whenever it comes.
  std::future<void> deny_next_need() {
    return std::async(std::launch::async, [this] {
      const auto need = coordinator_->wait_for<wire::Need>();
      wire::Address of;
      of.job = JobId{7};
      coordinator_->send(wire::Denied{.of = of, .n = need.n, .reason = "job 2 holds all"});
    });
  }
  // Registered, and the main thread waiting in the gate.
  void register_and_park() {
    ASSERT_TRUE(job_->runtime->register_job({}).ok());
    coordinator_->wait_for<wire::Register>();
    EXPECT_EQ(*job_->runtime->begin_iteration(millis(1)), GateResult::kTimedOut);
  }
  // Four tensors of private memory, and the main thread waiting in the gate.
  void park_with_tensors(Bytes size = mib(4)) {
    start();
    for (unsigned char seed = 1; seed <= 4; ++seed) {
      tensors_.emplace_back(*job_->allocator, size, seed);
    }
    register_and_park();
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
