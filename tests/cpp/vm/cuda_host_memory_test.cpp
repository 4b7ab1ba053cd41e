#include "csrc/vm/cuda/cuda_host_memory.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/vm/cuda/cuda_pinner.h"
#include "csrc/vm/tier/host_slab.h"

#include "tests/cpp/support/vm_cuda_world.h"

namespace gpushare::testing {
namespace {

constexpr std::uint32_t kExtent = vm::HostMemory::kExtentChunks;

class CudaHostMemory : public ::testing::Test {
 protected:
  CudaWorld world_{{}, mib(64), true};
  vm::CudaPinner pinner_{*world_.device, true};
};

TEST_F(CudaHostMemory, IsMadeChunkByChunkAndGoesWithItsOwner) {
  {
    vm::CudaHostMemory memory(*world_.device);
    EXPECT_EQ(world_.fake.num_contexts(), 0);
    for (std::uint32_t i = 0; i <= kExtent; ++i)
      ASSERT_TRUE(memory.add(i, 100).ok());
    EXPECT_EQ(world_.fake.host_used(), vm::kChunkBytes * (kExtent + 1));
    EXPECT_EQ(world_.fake.used(), Bytes{}) << "it is no memory of the device";
    EXPECT_EQ(memory.end_of_copy(3), kExtent);
    EXPECT_EQ(memory.end_of_copy(kExtent), 2 * kExtent);
    EXPECT_EQ(memory.address_of(2), memory.address_of(1) + vm::kChunkBytes.to_size());
    EXPECT_EQ(memory.place_of(2).offset, 2 * vm::kChunkBytes.value());
    std::memset(memory.address_of(kExtent), 7, vm::kChunkBytes.to_size());
  }
  EXPECT_EQ(world_.fake.host_used(), Bytes{});
  EXPECT_EQ(world_.fake.num_calls("reserve"), world_.fake.num_calls("free_address"));
}

TEST_F(CudaHostMemory, WhatFailedIsGoneOnWith) {
  for (const char* const call : {"reserve", "create", "map", "set_access"}) {
    vm::CudaHostMemory memory(*world_.device);
    world_.fake.fail(call);
    const Status failed = memory.add(0, 4);
    EXPECT_FALSE(failed.ok()) << call;
    EXPECT_NE(failed.message().find("CUDA_ERROR"), std::string::npos) << failed.message();
    ASSERT_TRUE(memory.add(0, 4).ok()) << call;
    ASSERT_TRUE(memory.add(1, 4).ok()) << call;
    EXPECT_EQ(world_.fake.host_used(), vm::kChunkBytes * 2) << call;
    world_.fake.fail(call);
    if (!memory.add(2, 4).ok()) continue;  // given up half done
    EXPECT_STREQ(call, "reserve");
    world_.fake.fail_never();
  }
  EXPECT_EQ(world_.fake.host_used(), Bytes{});
}

TEST_F(CudaHostMemory, ASlabHasItFromThePinner) {
  const auto slab = std::move(*vm::make_host_slab("", {gib(1), {}}, &pinner_));
  const vm::SlotId slot = *slab->take();
  EXPECT_NE(slab->place_of(slot)->memory, nullptr);
  EXPECT_EQ(world_.fake.pinned(), Bytes{}) << "it is pinned as it is";
  EXPECT_EQ(world_.fake.host_used(), vm::kChunkBytes);
  const std::vector<std::byte> bytes(vm::kChunkBytes.to_size(), std::byte{7});
  ASSERT_TRUE(slab->write(slot, bytes.data(), vm::kChunkBytes).ok());
  EXPECT_EQ(slab->address_of(slot)[5], std::byte{7});
}

TEST_F(CudaHostMemory, ASlabDoesWithoutIfTheFirstChunkCannotBeHad) {
  const auto slab = std::move(*vm::make_host_slab("", {gib(1), {}}, &pinner_));
  world_.fake.fail("create");
  const vm::SlotId slot = *slab->take();
  EXPECT_EQ(slab->place_of(slot)->memory, nullptr);
  EXPECT_GE(slab->place_of(slot)->fd, 0);
  EXPECT_GT(world_.fake.pinned(), Bytes{});
  ASSERT_TRUE(slab->take().has_value());
  EXPECT_EQ(world_.fake.host_used(), Bytes{});
}

TEST_F(CudaHostMemory, ASlabIsFullWhereALaterChunkCannotBeHad) {
  const auto slab = std::move(*vm::make_host_slab("", {gib(1), {}}, &pinner_));
  ASSERT_TRUE(slab->take().has_value());
  world_.fake.fail("create");
  const Result<vm::SlotId> none = slab->take();
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code(), StatusCode::kHostTierFull);
  EXPECT_NE(none.error().message().find("2.0 MiB used of"), std::string::npos)
      << none.error().message();
  EXPECT_NE(none.error().message().find("create 2.0 MiB of host memory on NUMA node 0"),
            std::string::npos)
      << none.error().message();
  const Result<vm::SlotId> second = slab->take();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->value, 1U);
}

TEST(CudaPinnerMemory, IsMadeOnlyWhereTheDeviceCanUseIt) {
  const CudaWorld without;
  EXPECT_EQ(vm::CudaPinner(*without.device, true).make_memory(), nullptr);
}

TEST_F(CudaHostMemory, IsMadeOnlyIfItIsAskedFor) {
  EXPECT_EQ(vm::CudaPinner(*world_.device, false).make_memory(), nullptr);
}

}  // namespace
}  // namespace gpushare::testing
