// What every Vmm must do. Instantiate with a class that has `vm::Vmm& vmm()`:
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Host, VmmContract, HostVmmMaker);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/vm/vmm.h"

#include "tests/cpp/support/lane_file.h"

namespace gpushare::testing {

template <typename Maker>
class VmmContract : public ::testing::Test {
 protected:
  static constexpr std::size_t kChunk = vm::kChunkBytes.to_size();

  vm::AddressRange reserve(std::int64_t num_chunks) {
    Result<vm::AddressRange> range = maker_.vmm().reserve(vm::kChunkBytes * num_chunks);
    EXPECT_TRUE(range.has_value());
    return std::move(*range);
  }
  static bool is_filled_with(const std::byte* from, std::size_t size, int value) {
    return std::all_of(from, from + size, [&](std::byte b) { return b == std::byte(value); });
  }

  Maker maker_;
};

TYPED_TEST_SUITE_P(VmmContract);

TYPED_TEST_P(VmmContract, ReservesWholeAlignedRanges) {
  const vm::AddressRange range = this->reserve(3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(range.base()) % this->kChunk, 0U);
  EXPECT_EQ(range.size(), vm::kChunkBytes * 3);
  EXPECT_TRUE(range.contains(range.base()));
  EXPECT_TRUE(range.contains(range.base() + 3 * this->kChunk - 1));
  EXPECT_FALSE(range.contains(range.base() + 3 * this->kChunk));
  EXPECT_FALSE(range.contains(range.base() - 1));
}

TYPED_TEST_P(VmmContract, BacksWithZeroesThatCanBeWritten) {
  const vm::AddressRange range = this->reserve(2);
  vm::Vmm& vmm = this->maker_.vmm();
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  EXPECT_TRUE(this->is_filled_with(range.base(), 2 * this->kChunk, 0));
  std::memset(range.base(), 7, 2 * this->kChunk);
  EXPECT_TRUE(this->is_filled_with(range.base(), 2 * this->kChunk, 7));
}

TYPED_TEST_P(VmmContract, BackingAnewGivesZeroesNotTheOldBytes) {
  const vm::AddressRange range = this->reserve(1);
  vm::Vmm& vmm = this->maker_.vmm();
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  std::memset(range.base(), 7, this->kChunk);
  ASSERT_TRUE(vmm.unback(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  EXPECT_TRUE(this->is_filled_with(range.base(), this->kChunk, 0));
}

TYPED_TEST_P(VmmContract, UnbackingOneChunkLeavesItsNeighbours) {
  const vm::AddressRange range = this->reserve(3);
  vm::Vmm& vmm = this->maker_.vmm();
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  std::memset(range.base(), 7, 3 * this->kChunk);
  ASSERT_TRUE(vmm.unback(range.base() + this->kChunk, vm::kChunkBytes).ok());
  EXPECT_TRUE(this->is_filled_with(range.base(), this->kChunk, 7));
  EXPECT_TRUE(this->is_filled_with(range.base() + 2 * this->kChunk, this->kChunk, 7));
}

TYPED_TEST_P(VmmContract, BacksChunksInAnyOrderAndUnbacksThemInOneCall) {
  const vm::AddressRange range = this->reserve(4);
  vm::Vmm& vmm = this->maker_.vmm();
  for (const std::size_t i : {2U, 0U, 3U, 1U}) {
    ASSERT_TRUE(vmm.back(range.base() + i * this->kChunk, vm::kChunkBytes).ok());
    std::memset(range.base() + i * this->kChunk, static_cast<int>(i + 1), this->kChunk);
  }
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    EXPECT_TRUE(this->is_filled_with(range.base() + i * this->kChunk, this->kChunk,
                                     static_cast<int>(i + 1)));
  }
  EXPECT_TRUE(vmm.unback(range.base(), range.size()).ok());
}

TYPED_TEST_P(VmmContract, CopiesOutAndInAtOtherBacking) {
  const vm::AddressRange range = this->reserve(1);
  vm::Vmm& vmm = this->maker_.vmm();
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  for (std::size_t i = 0; i < this->kChunk; ++i)
    range.base()[i] = std::byte(i * 31 % 251);
  std::vector<std::byte> host(this->kChunk);
  ASSERT_TRUE(vmm.copy_out(range.base(), host.data(), vm::kChunkBytes).ok());
  ASSERT_TRUE(vmm.unback(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.copy_in(host.data(), range.base(), vm::kChunkBytes).ok());
  EXPECT_TRUE(std::equal(host.begin(), host.end(), range.base()));
}

TYPED_TEST_P(VmmContract, RangesMoveWithTheirOwner) {
  vm::AddressRange first = this->reserve(1);
  std::byte* const base = first.base();
  vm::AddressRange second = std::move(first);
  EXPECT_EQ(second.base(), base);
  EXPECT_EQ(first.base(), nullptr);  // NOLINT(bugprone-use-after-move): it is what is tested
  ASSERT_TRUE(this->maker_.vmm().back(base, vm::kChunkBytes).ok());
  second = this->reserve(2);
  EXPECT_NE(second.base(), nullptr);
}

TYPED_TEST_P(VmmContract, MapsOneFileAtSeveralAddresses) {
  const vm::AddressRange range = this->reserve(4);
  vm::Vmm& vmm = this->maker_.vmm();
  const LaneFile file(2);
  std::byte* const second = range.base() + 2 * this->kChunk;
  ASSERT_TRUE(vmm.map_shared(range.base(), vm::kChunkBytes * 2, file.fd(), Bytes{}).ok());
  ASSERT_TRUE(vmm.map_shared(second, vm::kChunkBytes, file.fd(), vm::kChunkBytes).ok());
  EXPECT_EQ(file.occupied(), vm::kChunkBytes * 2);
  std::memset(range.base() + this->kChunk, 7, this->kChunk);
  EXPECT_TRUE(this->is_filled_with(second, this->kChunk, 7));
  ASSERT_TRUE(vmm.unmap_shared(range.base(), vm::kChunkBytes * 2).ok());
  EXPECT_TRUE(this->is_filled_with(second, this->kChunk, 7));
  EXPECT_EQ(file.occupied(), vm::kChunkBytes * 2);
}

TYPED_TEST_P(VmmContract, UnbackingAFilesMemoryGivesItBackToTheDevice) {
  const vm::AddressRange range = this->reserve(2);
  vm::Vmm& vmm = this->maker_.vmm();
  const LaneFile file(2);
  ASSERT_TRUE(vmm.map_shared(range.base(), range.size(), file.fd(), Bytes{}).ok());
  ASSERT_TRUE(vmm.unback(range.base() + this->kChunk, vm::kChunkBytes).ok());
  EXPECT_EQ(file.occupied(), vm::kChunkBytes);
  ASSERT_TRUE(vmm.back(range.base() + this->kChunk, vm::kChunkBytes).ok());
  std::memset(range.base(), 7, 2 * this->kChunk);
  EXPECT_EQ(file.occupied(), vm::kChunkBytes);
  ASSERT_TRUE(vmm.unmap_shared(range.base(), vm::kChunkBytes).ok());
  EXPECT_TRUE(this->is_filled_with(range.base() + this->kChunk, this->kChunk, 7));
}

TYPED_TEST_P(VmmContract, MakesAFilesMemoryPrivateInPlace) {
  const vm::AddressRange range = this->reserve(3);
  vm::Vmm& vmm = this->maker_.vmm();
  const LaneFile file(3);
  ASSERT_TRUE(vmm.map_shared(range.base(), range.size(), file.fd(), Bytes{}).ok());
  std::memset(range.base(), 7, 3 * this->kChunk);
  ASSERT_TRUE(vmm.make_private(range.base() + this->kChunk, vm::kChunkBytes).ok());
  EXPECT_TRUE(this->is_filled_with(range.base(), 3 * this->kChunk, 7));
  EXPECT_EQ(file.occupied(), vm::kChunkBytes * 2);
  // From now on it is unbacked as what back() gave.
  ASSERT_TRUE(vmm.unback(range.base() + this->kChunk, vm::kChunkBytes).ok());
  ASSERT_TRUE(vmm.back(range.base() + this->kChunk, vm::kChunkBytes).ok());
  EXPECT_TRUE(this->is_filled_with(range.base() + this->kChunk, this->kChunk, 0));
  EXPECT_EQ(file.occupied(), vm::kChunkBytes * 2);
}

REGISTER_TYPED_TEST_SUITE_P(VmmContract,
                            MapsOneFileAtSeveralAddresses,
                            UnbackingAFilesMemoryGivesItBackToTheDevice,
                            MakesAFilesMemoryPrivateInPlace,
                            ReservesWholeAlignedRanges,
                            BacksWithZeroesThatCanBeWritten,
                            BackingAnewGivesZeroesNotTheOldBytes,
                            UnbackingOneChunkLeavesItsNeighbours,
                            BacksChunksInAnyOrderAndUnbacksThemInOneCall,
                            CopiesOutAndInAtOtherBacking,
                            RangesMoveWithTheirOwner);

}  // namespace gpushare::testing
