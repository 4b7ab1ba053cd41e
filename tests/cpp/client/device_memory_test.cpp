// What the job says of its device: in its Hello, and on its page at hand-overs.
#include <optional>

#include <gtest/gtest.h>

#include "tests/cpp/support/client_job_with_tensors.h"

namespace gpushare::client {
namespace {

class DeviceMemoryReports : public JobWithTensors {
 protected:
  void start_on(std::optional<DeviceMemory> memory) {
    memory_ = memory;
    ClientConfig config;
    config.device_memory = [this] { return memory_; };
    start({}, config);
    tensors_.emplace_back(*job_->allocator, mib(4), 1);
  }

  std::optional<DeviceMemory> memory_;
};

TEST_F(DeviceMemoryReports, AreInTheHelloAndOnThePage) {
  start_on(DeviceMemory{gib(80), gib(79)});
  const auto hello = coordinator_->wait_for<wire::Hello>();
  EXPECT_EQ(hello.device_total, gib(80));
  EXPECT_EQ(hello.device_free, gib(79));
  memory_->free = gib(70);
  register_and_park();
  EXPECT_EQ(coordinator_->page().device_free_bytes.load(), gib(70).value());
  memory_->free = gib(60);
  coordinator_->grant_lease();
  job_->begin();
  coordinator_->revoke(Bytes{1});
  EXPECT_EQ(coordinator_->page().device_free_bytes.load(), gib(60).value());
}

// Between hand-overs the device is not asked, and its figure is of no use beside newer ones.
TEST_F(DeviceMemoryReports, AreTakenBackWhereTheJobsOwnMemoryIsSaidAnew) {
  start_on(DeviceMemory{gib(80), gib(70)});
  register_and_park();
  coordinator_->grant_lease();
  job_->begin();
  const Bytes before{coordinator_->page().resident_bytes.load()};
  ASSERT_NE(coordinator_->page().device_free_bytes.load(), 0);
  tensors_.emplace_back(*job_->allocator, mib(64), 2);
  // It is said some times a second.
  while (Bytes{coordinator_->page().resident_bytes.load()} == before) {
    job_->end();
    job_->begin();
  }
  EXPECT_EQ(coordinator_->page().device_free_bytes.load(), 0);
}

TEST_F(DeviceMemoryReports, SayNothingWhereThatIsUnknown) {
  start_on(std::nullopt);
  const auto hello = coordinator_->wait_for<wire::Hello>();
  EXPECT_EQ(hello.device_total, Bytes{0});
  EXPECT_EQ(hello.device_free, Bytes{0});
  register_and_park();
  EXPECT_EQ(coordinator_->page().device_free_bytes.load(), 0);
}

TEST_F(DeviceMemoryReports, TheImpossibleIsUnknown) {
  start_on(DeviceMemory{gib(1), gib(2)});
  EXPECT_EQ(coordinator_->wait_for<wire::Hello>().device_total, Bytes{0});
}

}  // namespace
}  // namespace gpushare::client
