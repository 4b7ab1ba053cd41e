// What a failing call of the driver does: an error, everything as before, nothing leaked.
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/vm/cuda/cuda_host_memory.h"
#include "csrc/vm/cuda/cuda_vmm.h"

#include "tests/cpp/support/vm_chunk.h"
#include "tests/cpp/support/vm_cuda_world.h"
#include "tests/cpp/support/vm_fake_cuda_driver.h"

namespace gpushare::testing {
namespace {

constexpr Bytes kThreeChunks = vm::kChunkBytes * 3;

// A spill and a restore, step by step. A step that fails is checked and taken again.
class Cycle {
 public:
  // With `memory`, spilled memory shows it; null: spilled memory faults.
  Cycle(FakeCudaDriver& fake, vm::CudaVmm& vmm, vm::CudaHostMemory* memory)
      : fake_(fake), vmm_(vmm), memory_(memory) {}

  void run() {
    step(false, true, [&] { return vmm_.back(base(), kThreeChunks); });
    const std::vector<std::byte> bytes(kThreeChunks.to_size(), std::byte{7});
    step(true, true, [&] { return vmm_.copy_in(bytes.data(), base(), kThreeChunks); });
    step(true, true, [&] { return vmm_.freeze(base(), kThreeChunks); });
    std::vector<std::byte> host(kThreeChunks.to_size());
    step(true, true, [&] { return vmm_.copy_out(base(), host.data(), kThreeChunks); });
    leave();
    const bool is_shown = vmm_.shows(base(), kThreeChunks);
    const bool is_in_place = vmm_.aside(base()) == base();
    step(is_shown, is_shown || is_in_place, [&] { return vmm_.back_aside(base(), kThreeChunks); });
    const bool is_there = is_backed();
    step(is_there, is_there,
         [&] { return vmm_.copy_in(host.data(), vmm_.aside(base()), kThreeChunks); });
    step(is_there, true, [&] { return vmm_.bring_in(base(), kThreeChunks); });
    std::memset(host.data(), 0, host.size());
    step(true, true, [&] { return vmm_.copy_out(base(), host.data(), kThreeChunks); });
    EXPECT_EQ(std::memcmp(host.data(), bytes.data(), bytes.size()), 0);
    step(true, false, [&] { return vmm_.unback(base(), kThreeChunks); });
  }
  [[nodiscard]] int num_failed() const { return num_failed_; }

 private:
  [[nodiscard]] std::byte* base() const { return range_.base(); }
  // What cannot be shown is no error.
  void leave() {
    vm::HostPlace place;
    if (memory_ != nullptr) {
      for (std::uint32_t i = 0; i < 3; ++i) {
        Status added = memory_->add(i, 3);
        if (!added.ok()) ++num_failed_;
        if (!added.ok()) added = memory_->add(i, 3);
        ASSERT_TRUE(added.ok()) << added.message();
      }
      place = memory_->place_of(0);
    }
    Status left = vmm_.unback_showing(base(), kThreeChunks, place);
    if (!left.ok()) {
      ++num_failed_;
      EXPECT_TRUE(is_backed()) << left.message();
      left = vmm_.unback_showing(base(), kThreeChunks, place);
    }
    ASSERT_TRUE(left.ok()) << left.message();
    EXPECT_EQ(is_backed(), vmm_.shows(base(), kThreeChunks));
    if (memory_ != nullptr && !vmm_.shows(base(), kThreeChunks)) ++num_failed_;
  }
  template <typename Body>
  void step(bool is_backed_before, bool is_backed_after, Body body) {
    Status status = body();
    if (!status.ok()) {
      ++num_failed_;
      EXPECT_NE(status.message().find("CUDA_ERROR"), std::string::npos) << status.message();
      EXPECT_EQ(is_backed(), is_backed_before) << status.message();
      status = body();
    }
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(is_backed(), is_backed_after);
  }
  // All of it or, checked too, none.
  [[nodiscard]] bool is_backed() const {
    const bool is_first = fake_.is_accessible(base(), vm::kChunkBytes);
    for (std::size_t at = 0; at < kThreeChunks.to_size(); at += kChunk) {
      EXPECT_EQ(fake_.is_accessible(base() + at, vm::kChunkBytes), is_first);
    }
    return is_first;
  }

  FakeCudaDriver& fake_;
  vm::CudaVmm& vmm_;
  vm::CudaHostMemory* const memory_;
  vm::AddressRange range_ = *vmm_.reserve(kThreeChunks);
  int num_failed_ = 0;
};

struct PiecesAndMode {
  Bytes most_piece;
  bool is_reachable;
};

class CudaFailureInPieces : public ::testing::TestWithParam<PiecesAndMode> {};

INSTANTIATE_TEST_SUITE_P(OfEachSize,
                         CudaFailureInPieces,
                         ::testing::Values(PiecesAndMode{vm::kChunkBytes, false},
                                           PiecesAndMode{mib(4), false},
                                           PiecesAndMode{mib(16), false},
                                           PiecesAndMode{vm::kChunkBytes, true},
                                           PiecesAndMode{mib(4), true},
                                           PiecesAndMode{mib(16), true}),
                         [](const ::testing::TestParamInfo<PiecesAndMode>& one) {
                           const std::int64_t size_mib = one.param.most_piece / mib(1);
                           return std::to_string(size_mib) + "MiB" +
                                  (one.param.is_reachable ? "Reachable" : "Unmapped");
                         });

TEST_P(CudaFailureInPieces, EachFailingCallIsReportedAndNothingIsLost) {
  int num_calls = 0;
  int num_failed = 0;
  for (int nth = 0; nth <= num_calls; ++nth) {
    SCOPED_TRACE(nth);
    FakeCudaDriver fake(mib(64), GetParam().is_reachable);
    {
      CudaUser user({.most_piece = GetParam().most_piece});
      vm::CudaHostMemory memory(*user.device);
      Cycle cycle(fake, user.vmm, user.vmm.shows_spilled() ? &memory : nullptr);
      const int before = fake.num_calls();
      if (nth > 0) fake.fail_at(nth);
      cycle.run();
      if (nth == 0) num_calls = fake.num_calls() - before;
      num_failed += cycle.num_failed();
    }
    EXPECT_EQ(fake.leaks(), "");
  }
  EXPECT_GT(num_calls, 40);
  // The rest is what is tried again later, and putting the thread's context back.
  EXPECT_GT(num_failed, num_calls / 2);
}

TEST(CudaFailure, AFullDeviceChangesNothing) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(mib(80));
  const Status status = world.vmm.back(range.base(), range.size());
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_NE(status.message().find("back 80.0 MiB at 0x"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find(
                "create 16.0 MiB after 64.0 MiB: CUDA_ERROR_OUT_OF_MEMORY (out of memory)"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(world.fake.used(), Bytes{});
  EXPECT_TRUE(world.vmm.back(range.base(), mib(64)).ok());
}

TEST(CudaFailure, WhatCouldNotBeReleasedIsReleasedWithTheNextMemory) {
  CudaWorld world(kByChunks);
  const vm::AddressRange range = *world.vmm.reserve(kThreeChunks);
  ASSERT_TRUE(world.vmm.back(range.base(), kThreeChunks).ok());
  world.fake.fail("release", 2, 1);
  ASSERT_TRUE(world.vmm.unback(range.base(), kThreeChunks).ok()) << "its addresses are free";
  EXPECT_EQ(world.fake.used(), vm::kChunkBytes * 2);
  ASSERT_TRUE(world.vmm.back(range.base(), vm::kChunkBytes).ok());
  EXPECT_EQ(world.fake.used(), vm::kChunkBytes);
}

TEST(CudaFailure, WhatCouldNotBeReleasedIsReleasedAtTheEnd) {
  FakeCudaDriver fake;
  {
    CudaUser user(kByChunks);
    vm::CudaVmm& vmm = user.vmm;
    const vm::AddressRange range = *vmm.reserve(kThreeChunks);
    ASSERT_TRUE(vmm.back(range.base(), kThreeChunks).ok());
    fake.fail("release", 1, 2);
    ASSERT_TRUE(vmm.unback(range.base(), kThreeChunks).ok());
  }
  EXPECT_EQ(fake.leaks(), "");
}

// Two failures: no access, and then no unmapping in going back.
TEST(CudaFailure, WhatCouldNotBeUnmappedIsUnmappedLater) {
  CudaWorld world(kByChunks);
  const vm::AddressRange range = *world.vmm.reserve(kThreeChunks);
  world.fake.fail("set_access");
  world.fake.fail("unmap", 1, 1);
  EXPECT_EQ(world.vmm.back(range.base(), kThreeChunks).code(), StatusCode::kIo);
  EXPECT_EQ(world.fake.used(), kThreeChunks);
  // The first chunk still cannot be unmapped; the two others can, and are released.
  const Status status = world.vmm.back(range.base(), kThreeChunks);
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find("has not unmapped"), std::string::npos) << status.message();
  EXPECT_EQ(world.fake.used(), vm::kChunkBytes);
  ASSERT_TRUE(world.vmm.back(range.base(), kThreeChunks).ok());
  EXPECT_EQ(world.fake.used(), kThreeChunks);
  EXPECT_TRUE(world.vmm.unback(range.base(), kThreeChunks).ok());
}

TEST(CudaFailure, AFailedRestoreIsUndoneAlsoIfTheDeviceSaysNothingMore) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(kThreeChunks);
  ASSERT_TRUE(world.vmm.back_aside(range.base(), kThreeChunks).ok());
  world.fake.fail("context_synchronize");
  world.vmm.unback_aside(range.base(), kThreeChunks);
  EXPECT_EQ(world.fake.used(), Bytes{});
}

// Whoever gets the error gives the host memory to others.
TEST(CudaFailure, NothingIsOnItsWayAfterACopyThatFailed) {
  CudaWorld world;
  const vm::AddressRange range = *world.vmm.reserve(vm::kChunkBytes);
  ASSERT_TRUE(world.vmm.back(range.base(), range.size()).ok());
  world.fake.launch(range.base(), range.size(), std::byte{7});
  ASSERT_TRUE(world.vmm.freeze(range.base(), range.size()).ok());
  std::vector<std::byte> host(kChunk);
  world.fake.fail("stream_synchronize");
  EXPECT_FALSE(world.vmm.copy_out(range.base(), host.data(), range.size()).ok());
  EXPECT_EQ(host.back(), std::byte{7}) << "it has arrived";
}

TEST(CudaFailure, AddressSpaceThatIsRefusedIsAnError) {
  CudaWorld world;
  world.fake.fail("reserve");
  const Result<vm::AddressRange> range = world.vmm.reserve(kThreeChunks);
  ASSERT_FALSE(range.has_value());
  EXPECT_NE(range.error().message().find("reserve 6.0 MiB of address space: CUDA_ERROR"),
            std::string::npos)
      << range.error().message();
}

}  // namespace
}  // namespace gpushare::testing
