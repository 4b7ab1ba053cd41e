#include "csrc/vm/cuda/cuda_pinner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/vm/tier/host_slab.h"

#include "tests/cpp/support/vm_chunk.h"
#include "tests/cpp/support/vm_cuda_world.h"
#include "tests/cpp/support/vm_temp_folder.h"

namespace gpushare::testing {
namespace {

class CudaPinner : public ::testing::Test {
 protected:
  std::unique_ptr<vm::HostSlab> make_slab(const HostBytes& budgets,
                                          const std::string& folder = "") {
    return std::move(*vm::make_host_slab(folder, budgets, &pinner_));
  }
  // Slots that are all there are, one after the other.
  static void take(vm::HostSlab& slab, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const Result<vm::SlotId> slot = slab.take();
      ASSERT_TRUE(slot.has_value());
      ASSERT_EQ(slot->value, i);
    }
  }
  // Where copies of the slab's first slots end, each as long as it may be.
  static std::vector<std::size_t> pieces(vm::HostSlab& slab, std::uint32_t num_slots) {
    std::vector<std::size_t> ends;
    for (std::uint32_t first = 0; first < num_slots;) {
      first += static_cast<std::uint32_t>(slab.num_together({first}, num_slots - first));
      ends.push_back(first);
    }
    return ends;
  }

  CudaWorld world_;
  vm::CudaPinner pinner_{*world_.device};
};

TEST_F(CudaPinner, PinsTheSlabSomeSlotsAtATime) {
  auto slab = make_slab({gib(1), {}});
  EXPECT_EQ(world_.fake.pinned(), Bytes{});
  EXPECT_EQ(world_.fake.num_contexts(), 0);
  take(*slab, 1);
  EXPECT_EQ(world_.fake.pinned(), mib(16));
  slab->give_back({0});
  take(*slab, 9);
  EXPECT_EQ(world_.fake.pinned(), mib(32));
  EXPECT_EQ(world_.fake.num_calls("host_register"), 2);
  slab.reset();
  EXPECT_EQ(world_.fake.pinned(), Bytes{});
}

TEST_F(CudaPinner, PinsNoMoreThanTheBudget) {
  auto slab = make_slab({vm::kChunkBytes * 3, {}});
  take(*slab, 3);
  EXPECT_EQ(world_.fake.pinned(), vm::kChunkBytes * 3);
  slab->set_budgets({vm::kChunkBytes * 10, {}});
  for (int i = 0; i < 7; ++i)
    ASSERT_TRUE(slab->take().has_value());
  EXPECT_EQ(world_.fake.pinned(), vm::kChunkBytes * 10);
  EXPECT_EQ(pieces(*slab, 10), (std::vector<std::size_t>{3, 10}));
}

TEST_F(CudaPinner, ACopyStaysInWhatWasPinnedByOneCall) {
  auto slab = make_slab({gib(1), {}});
  take(*slab, 40);
  EXPECT_EQ(pieces(*slab, 40), (std::vector<std::size_t>{8, 16, 24, 32, 40}));
  EXPECT_EQ(slab->num_together({3}, 2), 2U);
  EXPECT_EQ(slab->num_together({3}, 20), 5U);
  const vm::AddressRange range = *world_.vmm.reserve(vm::kChunkBytes * 8);
  ASSERT_TRUE(world_.vmm.back(range.base(), range.size()).ok());
  EXPECT_TRUE(world_.vmm.copy_out(range.base(), slab->address_of({8}), range.size()).ok());
}

TEST_F(CudaPinner, WhatIsNotPinnedIsUsedAllTheSame) {
  auto slab = make_slab({gib(1), {}});
  world_.fake.fail("host_register", 2);
  ::testing::internal::CaptureStderr();
  take(*slab, 20);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("copies are slower, since pin 16.0 MiB at 0x"), std::string::npos) << said;
  EXPECT_EQ(world_.fake.pinned(), mib(32));
  EXPECT_EQ(pieces(*slab, 20), (std::vector<std::size_t>{8, 16, 20}));
  std::vector<std::byte> bytes(kChunk, std::byte{7});
  ASSERT_TRUE(slab->write({9}, bytes.data(), vm::kChunkBytes).ok());
  std::fill(bytes.begin(), bytes.end(), std::byte{});
  ASSERT_TRUE(slab->read({9}, bytes.data(), vm::kChunkBytes).ok());
  EXPECT_EQ(bytes.back(), std::byte{7});
  slab.reset();
  EXPECT_EQ(world_.fake.pinned(), Bytes{});
}

TEST_F(CudaPinner, SaysOnceThatItCannot) {
  auto slab = make_slab({gib(1), {}});
  world_.fake.fail("host_register", 1, 5);
  ::testing::internal::CaptureStderr();
  take(*slab, 40);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(CudaPinner, OfAHostTierOfBothKindsItPinsTheRam) {
  const TempFolder folder;
  auto slab = make_slab({vm::kChunkBytes * 2, vm::kChunkBytes * 2}, folder.path());
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(slab->take().has_value());
  EXPECT_EQ(world_.fake.pinned(), vm::kChunkBytes * 2);
  EXPECT_EQ(slab->num_together({0}, 2), 2U);
}

}  // namespace
}  // namespace gpushare::testing
