#include "csrc/plugin/segment_plugin.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/base/log.h"
#include "csrc/vm/contract/vmm.h"

#include "tests/cpp/support/plugin_world.h"

namespace gpushare::plugin {
namespace {

using ::gpushare::testing::kFakeFree;
using ::gpushare::testing::kFakeTotal;
using ::gpushare::testing::PluginWorld;
using ::testing::HasSubstr;

constexpr std::size_t kChunk = std::size_t{2} << 20;

class SegmentPlugin : public ::testing::Test, public PluginWorld {
 protected:
  void install(PluginOptions options = {}) {
    const Status installed = install_segment_plugin(with_names(std::move(options)));
    ASSERT_TRUE(installed.ok()) << installed.to_string();
  }
  void TearDown() override {
    if (segment_plugin_is_intact()) {
      EXPECT_TRUE(uninstall_segment_plugin().ok());
    }
    log::configure(log::Level::kWarn, "gpushare");
  }
};

TEST_F(SegmentPlugin, HandsOutSegmentsOfTheStoreAndTakesThemBack) {
  install();
  void* segment = nullptr;
  ASSERT_EQ(importer.malloc(&segment, kChunk + 1), kCudaSuccess);
  EXPECT_TRUE(store.owns(segment));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment) % kChunk, 0U);
  static_cast<std::byte*>(segment)[kChunk] = std::byte{1};  // all of it is memory
  EXPECT_EQ(importer.free(segment), kCudaSuccess);

  EXPECT_EQ(runtime.mallocs, 0);
  EXPECT_EQ(runtime.frees, 0);
  const PluginCounts counts = plugin_counts();
  EXPECT_EQ(counts.taken, 1);
  EXPECT_EQ(counts.given_back, 1);
  EXPECT_EQ(counts.forwarded_frees, 0);
  EXPECT_EQ(counts.refused, 0);
}

TEST_F(SegmentPlugin, AFreeWaitsForTheDeviceFirst) {
  install();
  void* segment = take();
  EXPECT_EQ(runtime.synchronizes, 0);
  EXPECT_EQ(importer.free(segment), kCudaSuccess);
  EXPECT_EQ(runtime.synchronizes, 1);
  EXPECT_EQ(runtime.last_synchronized, 0);
}

TEST_F(SegmentPlugin, AFreeWaitsForItsOwnDeviceAndLeavesTheThreadsAsItIs) {
  install();
  void* segment = take();
  set_device(1);
  runtime.set_devices = 0;
  std::thread([&] {
    set_device(1);
    EXPECT_EQ(importer.free(segment), kCudaSuccess);
    EXPECT_EQ(device(), 1);
  }).join();
  EXPECT_EQ(runtime.synchronizes, 1);
  EXPECT_EQ(runtime.last_synchronized, 0);
  // The test's own, and one on a thread that ends: none that would make a context on device 1.
  EXPECT_EQ(runtime.set_devices, 2);
  set_device(0);
}

TEST_F(SegmentPlugin, AnErrorOfTheDevicesEarlierWorkComesOutOfTheFreeAndTheSegmentStays) {
  install();
  void* segment = take();
  runtime.synchronize_error = 700;  // cudaErrorIllegalAddress
  EXPECT_EQ(importer.free(segment), 700);
  EXPECT_EQ(plugin_counts().given_back, 0);
  runtime.synchronize_error = 0;
  EXPECT_EQ(importer.free(segment), kCudaSuccess);
}

TEST_F(SegmentPlugin, MemoryOlderThanThePluginIsFreedByTheRuntime) {
  void* old = take();
  install();
  EXPECT_FALSE(store.owns(old));
  EXPECT_EQ(importer.free(old), kCudaSuccess);
  EXPECT_EQ(runtime.frees, 1);
  EXPECT_EQ(runtime.synchronizes, 0);
  EXPECT_EQ(plugin_counts().forwarded_frees, 1);
}

TEST_F(SegmentPlugin, AnotherDevicesMemoryIsTheRuntimesAndThatIsSaidOnce) {
  log::configure(log::Level::kInfo, "gpushare");
  install();
  set_device(1);
  ::testing::internal::CaptureStderr();
  void* one = take();
  void* two = take();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "gpushare: device 1 is not shared: its memory is torch's own\n");
  EXPECT_EQ(runtime.mallocs, 2);
  EXPECT_EQ(importer.free(one), kCudaSuccess);
  EXPECT_EQ(importer.free(two), kCudaSuccess);
  EXPECT_EQ(runtime.frees, 2);
  set_device(0);
}

TEST_F(SegmentPlugin, ServesTheDeviceItWasTold) {
  install({.device = 1});
  void* other = take();
  EXPECT_FALSE(store.owns(other));
  set_device(1);
  void* segment = take();
  EXPECT_TRUE(store.owns(segment));
  EXPECT_EQ(importer.free(segment), kCudaSuccess);
  EXPECT_EQ(runtime.last_synchronized, 1);
  set_device(0);
  EXPECT_EQ(importer.free(other), kCudaSuccess);
}

TEST_F(SegmentPlugin, NoSizeAndNoAddressAreTheRuntimesToAnswer) {
  install();
  void* segment = this;
  EXPECT_EQ(importer.malloc(&segment, 0), kCudaSuccess);
  EXPECT_EQ(segment, nullptr);
  EXPECT_EQ(importer.malloc(nullptr, kChunk), kCudaInvalidValue);
  EXPECT_EQ(runtime.mallocs, 2);
  EXPECT_EQ(importer.free(nullptr), kCudaSuccess);
  EXPECT_EQ(runtime.null_frees, 1);
  std::size_t total = 0;
  EXPECT_EQ(importer.mem_get_info(nullptr, &total), kCudaInvalidValue);
}

TEST_F(SegmentPlugin, MakesTheDevicesContextOnceAThread) {
  install();
  void* segments[3] = {take(), take(), nullptr};
  EXPECT_EQ(runtime.null_frees, 1);
  std::thread([&] { segments[2] = take(); }).join();
  EXPECT_EQ(runtime.null_frees, 2);
  for (void* segment : segments)
    EXPECT_EQ(importer.free(segment), kCudaSuccess);
}

TEST_F(SegmentPlugin, WithoutAContextThereIsNoSegment) {
  install();
  runtime.free_error = 100;  // cudaErrorNoDevice
  void* segment = nullptr;
  EXPECT_EQ(importer.malloc(&segment, kChunk), 100);
  EXPECT_EQ(plugin_counts().taken, 0);
  runtime.free_error = 0;
  EXPECT_EQ(importer.free(take()), kCudaSuccess);
  EXPECT_EQ(runtime.null_frees, 2);  // it was tried again
}

TEST_F(SegmentPlugin, ARefusalIsOutOfMemoryAndItsReasonIsKeptForItsThread) {
  allocator->set_room(mib(4));
  install();
  EXPECT_EQ(take_refusal(), "");
  ::testing::internal::CaptureStderr();
  void* segment = nullptr;
  EXPECT_EQ(importer.malloc(&segment, 3 * kChunk), kCudaOutOfMemory);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(segment, nullptr);
  std::thread([] { EXPECT_EQ(take_refusal(), ""); }).join();
  EXPECT_THAT(take_refusal(), HasSubstr("limit of 4.0 MiB"));
  EXPECT_EQ(take_refusal(), "");
  EXPECT_EQ(importer.malloc(&segment, SIZE_MAX), kCudaOutOfMemory);
  EXPECT_THAT(take_refusal(), HasSubstr(std::to_string(SIZE_MAX)));
  EXPECT_EQ(importer.malloc(&segment, SIZE_MAX), kCudaOutOfMemory);
  EXPECT_EQ(plugin_counts().refused, 3);
  EXPECT_EQ(importer.free(take()), kCudaSuccess);
  EXPECT_EQ(take_refusal(), "");  // of what was asked for since, there was enough
}

TEST_F(SegmentPlugin, ARefusalIsLoggedForDebugging) {
  allocator->set_room(mib(4));
  log::configure(log::Level::kDebug, "gpushare");
  install();
  ::testing::internal::CaptureStderr();
  void* segment = nullptr;
  EXPECT_EQ(importer.malloc(&segment, 3 * kChunk), kCudaOutOfMemory);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a segment was refused: "));
}

TEST_F(SegmentPlugin, ShowsThisJobsShareOfTheDevice) {
  install();
  EXPECT_EQ(figures(), std::pair(kFakeFree, kFakeTotal));  // no limit: as the device says
  store.set_share_source([] { return mib(8); });
  EXPECT_EQ(figures(), std::pair(4 * kChunk, 4 * kChunk));
  void* segment = take();
  EXPECT_EQ(figures(), std::pair(3 * kChunk, 4 * kChunk));
  EXPECT_EQ(importer.free(segment), kCudaSuccess);
  // Never more than the device has.
  store.set_share_source([] { return gib(100); });
  EXPECT_EQ(figures(), std::pair(kFakeFree, kFakeTotal));
  // Another device is not shared.
  store.set_share_source([] { return mib(8); });
  set_device(1);
  EXPECT_EQ(figures(), std::pair(kFakeFree, kFakeTotal));
  set_device(0);
}

TEST_F(SegmentPlugin, OtherDevicesAreRefusedAccessToMemoryThatMoves) {
  install();
  EXPECT_EQ(importer.enable_peer_access(1), kCudaSuccess) << "that of another device does not";
  set_device(1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(importer.enable_peer_access(0), kCudaPeerAccessUnsupported);
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "gpushare: device 1 is refused access to memory of device 0, which is shared and moves. "
      "GPUSHARE_PASSTHROUGH=on leaves this job's memory where it is\n");
  EXPECT_EQ(runtime.enabled_peers, 1);
  set_device(0);
}

TEST_F(SegmentPlugin, AScopeHandsOutTheRuntimesMemoryToItsThread) {
  install();
  void* segment = take();
  void* shown = nullptr;
  {
    const PassthroughScope scope;
    {
      const PassthroughScope nested;
    }
    shown = take();
    std::thread([&] { EXPECT_EQ(importer.free(take()), kCudaSuccess); }).join();
    EXPECT_EQ(runtime.mallocs, 1);
    EXPECT_EQ(importer.free(segment), kCudaSuccess);  // who frees is no matter
    EXPECT_EQ(plugin_counts().given_back, 2);
  }
  EXPECT_FALSE(store.owns(shown));
  EXPECT_EQ(importer.free(shown), kCudaSuccess);
  EXPECT_EQ(runtime.frees, 1);
  void* after = take();
  EXPECT_TRUE(store.owns(after));
  EXPECT_EQ(importer.free(after), kCudaSuccess);
}

TEST_F(SegmentPlugin, ServesSeveralThreadsAtOnce) {
  constexpr int kNumThreads = 4;
  constexpr int kNumRounds = 50;
  allocator->set_room(mib(4));  // so some are refused
  install();
  std::vector<std::thread> threads;
  for (int i = 0; i < kNumThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kNumRounds; ++round) {
        void* segment = nullptr;
        if (importer.malloc(&segment, kChunk) != kCudaSuccess) {
          EXPECT_NE(take_refusal(), "");
        } else {
          EXPECT_EQ(importer.free(segment), kCudaSuccess);
        }
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  const PluginCounts counts = plugin_counts();
  EXPECT_EQ(counts.taken + counts.refused, kNumThreads * kNumRounds);
  EXPECT_EQ(counts.given_back, counts.taken);
  EXPECT_EQ(runtime.null_frees, kNumThreads);
}

TEST_F(SegmentPlugin, PassesAllThroughIfToldSo) {
  store.set_share_source([] { return mib(8); });
  install({.passthrough_all = true});
  EXPECT_EQ(importer.free(take()), kCudaSuccess);
  EXPECT_EQ(runtime.mallocs, 1);
  EXPECT_EQ(runtime.frees, 1);
  EXPECT_EQ(figures(), std::pair(kFakeFree, kFakeTotal));
}

}  // namespace
}  // namespace gpushare::plugin
