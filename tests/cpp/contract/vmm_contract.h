// What every Vmm must do. Instantiate with a class that has `vm::Vmm& vmm()` and says whether fresh
// memory is zeroed, `static constexpr bool kZeroes`:
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Host, VmmContract, HostVmmMaker);
//
// Bytes are read and written by the Vmm's own copies, so that memory can be a device's.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/base/unique_fd.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::testing {

template <typename Maker>
class VmmContract : public ::testing::Test {
 protected:
  static constexpr std::size_t kChunk = vm::kChunkBytes.to_size();

  void SetUp() override {
    if (!maker_.is_there()) GTEST_SKIP() << "there is no such device";
  }

  vm::AddressRange reserve(std::int64_t num_chunks) {
    Result<vm::AddressRange> range = maker_.vmm().reserve(vm::kChunkBytes * num_chunks);
    EXPECT_TRUE(range.has_value());
    return std::move(*range);
  }
  void fill(std::byte* address, std::size_t num_chunks, int value) {
    const std::vector<std::byte> bytes(num_chunks * kChunk, std::byte(value));
    ASSERT_TRUE(maker_.vmm().copy_in(bytes.data(), address, size_of(num_chunks)).ok());
  }
  bool holds(const std::byte* address, std::size_t num_chunks, int value) {
    std::vector<std::byte> bytes(num_chunks * kChunk);
    EXPECT_TRUE(maker_.vmm().copy_out(address, bytes.data(), size_of(num_chunks)).ok());
    return std::all_of(bytes.begin(), bytes.end(),
                       [&](std::byte b) { return b == std::byte(value); });
  }
  static Bytes size_of(std::size_t num_chunks) {
    return vm::kChunkBytes * static_cast<std::int64_t>(num_chunks);
  }
  // A file of so many chunks.
  static UniqueFd make_file(std::int64_t num_chunks) {
    UniqueFd fd(::memfd_create("host-tier", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(fd.get(), num_chunks * vm::kChunkBytes.value()), 0);
    return fd;
  }
  // Backed memory leaves for the host tier, where `copy` has its bytes then.
  void spill(std::byte* address, std::size_t num_chunks, std::vector<std::byte>& copy, int fd) {
    vm::Vmm& vmm = maker_.vmm();
    const Bytes size = size_of(num_chunks);
    ASSERT_TRUE(vmm.freeze(address, size).ok());
    copy.resize(size.to_size());
    ASSERT_TRUE(vmm.copy_out(address, copy.data(), size).ok());
    ASSERT_EQ(::pwrite(fd, copy.data(), copy.size(), 0), size.value());
    ASSERT_TRUE(vmm.unback_showing(address, size, {fd, 0}).ok());
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

TYPED_TEST_P(VmmContract, BacksWithMemoryThatCanBeWritten) {
  const vm::AddressRange range = this->reserve(2);
  ASSERT_TRUE(this->maker_.vmm().back(range.base(), range.size()).ok());
  EXPECT_TRUE(!TypeParam::kZeroes || this->holds(range.base(), 2, 0));
  this->fill(range.base(), 2, 7);
  EXPECT_TRUE(this->holds(range.base(), 2, 7));
}

TYPED_TEST_P(VmmContract, BackingAnewGivesOtherMemory) {
  const vm::AddressRange range = this->reserve(1);
  vm::Vmm& vmm = this->maker_.vmm();
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  this->fill(range.base(), 1, 7);
  ASSERT_TRUE(vmm.unback(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  EXPECT_TRUE(!TypeParam::kZeroes || this->holds(range.base(), 1, 0));
  this->fill(range.base(), 1, 8);
  EXPECT_TRUE(this->holds(range.base(), 1, 8));
}

TYPED_TEST_P(VmmContract, UnbackingOneChunkLeavesItsNeighbours) {
  const vm::AddressRange range = this->reserve(3);
  vm::Vmm& vmm = this->maker_.vmm();
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  this->fill(range.base(), 3, 7);
  ASSERT_TRUE(vmm.unback(range.base() + this->kChunk, vm::kChunkBytes).ok());
  EXPECT_TRUE(this->holds(range.base(), 1, 7));
  EXPECT_TRUE(this->holds(range.base() + 2 * this->kChunk, 1, 7));
}

TYPED_TEST_P(VmmContract, BacksChunksInAnyOrderAndUnbacksThemInOneCall) {
  const vm::AddressRange range = this->reserve(4);
  vm::Vmm& vmm = this->maker_.vmm();
  for (const std::size_t i : {2U, 0U, 3U, 1U}) {
    ASSERT_TRUE(vmm.back(range.base() + i * this->kChunk, vm::kChunkBytes).ok());
    this->fill(range.base() + i * this->kChunk, 1, static_cast<int>(i + 1));
  }
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    EXPECT_TRUE(this->holds(range.base() + i * this->kChunk, 1, static_cast<int>(i + 1)));
  }
  EXPECT_TRUE(vmm.unback(range.base(), range.size()).ok());
}

TYPED_TEST_P(VmmContract, CopiesOverSeveralChunksOutAndInAtOtherBacking) {
  const vm::AddressRange range = this->reserve(3);
  vm::Vmm& vmm = this->maker_.vmm();
  for (const std::size_t i : {0U, 1U, 2U}) {
    ASSERT_TRUE(vmm.back(range.base() + i * this->kChunk, vm::kChunkBytes).ok());
  }
  std::vector<std::byte> before(3 * this->kChunk);
  for (std::size_t i = 0; i < before.size(); ++i)
    before[i] = std::byte(i * 31 % 251);
  ASSERT_TRUE(vmm.copy_in(before.data(), range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.unback(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.copy_in(before.data(), range.base(), range.size()).ok());
  std::vector<std::byte> after(3 * this->kChunk);
  ASSERT_TRUE(vmm.copy_out(range.base(), after.data(), range.size()).ok());
  EXPECT_TRUE(before == after);
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

TYPED_TEST_P(VmmContract, SpilledMemoryComesBackAtItsAddress) {
  const vm::AddressRange range = this->reserve(4);
  vm::Vmm& vmm = this->maker_.vmm();
  const UniqueFd fd = this->make_file(2);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  this->fill(range.base(), 4, 7);
  std::byte* const address = range.base() + this->kChunk;
  this->fill(address, 2, 8);
  std::vector<std::byte> copy;
  this->spill(address, 2, copy, fd.get());
  ASSERT_TRUE(vmm.back_aside(address, vm::kChunkBytes * 2).ok());
  ASSERT_TRUE(vmm.copy_in(copy.data(), vmm.aside(address), vm::kChunkBytes * 2).ok());
  ASSERT_TRUE(vmm.bring_in(address, vm::kChunkBytes * 2).ok());
  EXPECT_TRUE(this->holds(range.base(), 1, 7));
  EXPECT_TRUE(this->holds(address, 2, 8));
  EXPECT_TRUE(this->holds(address + 2 * this->kChunk, 1, 7));
  EXPECT_TRUE(vmm.unback(range.base(), range.size()).ok()) << "as what back() gave";
}

TYPED_TEST_P(VmmContract, MemoryAsideCanBeGivenUp) {
  const vm::AddressRange range = this->reserve(2);
  vm::Vmm& vmm = this->maker_.vmm();
  const UniqueFd fd = this->make_file(2);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  this->fill(range.base(), 2, 7);
  std::vector<std::byte> copy;
  this->spill(range.base(), 2, copy, fd.get());
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(vmm.back_aside(range.base(), range.size()).ok());
    this->fill(vmm.aside(range.base()), 2, 8);
    vmm.unback_aside(range.base(), range.size());
  }
  ASSERT_TRUE(vmm.hide(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  this->fill(range.base(), 2, 9);
  EXPECT_TRUE(this->holds(range.base(), 2, 9));
}

TYPED_TEST_P(VmmContract, ThawedMemoryIsAsBefore) {
  const vm::AddressRange range = this->reserve(2);
  vm::Vmm& vmm = this->maker_.vmm();
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  this->fill(range.base(), 2, 7);
  ASSERT_TRUE(vmm.freeze(range.base(), range.size()).ok());
  EXPECT_TRUE(this->holds(range.base(), 2, 7));
  vmm.thaw(range.base(), range.size());
  this->fill(range.base(), 2, 8);
  EXPECT_TRUE(this->holds(range.base(), 2, 8));
}

REGISTER_TYPED_TEST_SUITE_P(VmmContract,
                            ReservesWholeAlignedRanges,
                            BacksWithMemoryThatCanBeWritten,
                            BackingAnewGivesOtherMemory,
                            UnbackingOneChunkLeavesItsNeighbours,
                            BacksChunksInAnyOrderAndUnbacksThemInOneCall,
                            CopiesOverSeveralChunksOutAndInAtOtherBacking,
                            RangesMoveWithTheirOwner,
                            SpilledMemoryComesBackAtItsAddress,
                            MemoryAsideCanBeGivenUp,
                            ThawedMemoryIsAsBefore);

}  // namespace gpushare::testing
