// What a Vmm does besides whose memory the CPU uses in place: it maps files, and spilled memory
// shows its copies. Instantiate with a class that has `vm::Vmm& vmm()`:
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Host, HostVmmContract, HostVmmMaker);
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "csrc/base/unique_fd.h"
#include "csrc/vm/contract/vmm.h"

#include "tests/cpp/contract/vmm_contract.h"
#include "tests/cpp/support/lane_file.h"
#include "tests/cpp/support/readable.h"

namespace gpushare::testing {

template <typename Maker>
class HostVmmContract : public VmmContract<Maker> {
 protected:
  using VmmContract<Maker>::kChunk;
  using VmmContract<Maker>::maker_;

  static bool is_filled_with(const std::byte* from, std::size_t size, int value) {
    return std::all_of(from, from + size, [&](std::byte b) { return b == std::byte(value); });
  }

  // Backed, filled, with a copy in a file, and spilled: `first` of so many chunks.
  void spill(const vm::AddressRange& range, std::int64_t first, std::int64_t count, int fd) {
    vm::Vmm& vmm = maker_.vmm();
    std::byte* const address = range.base() + first * vm::kChunkBytes.value();
    const Bytes size = vm::kChunkBytes * count;
    ASSERT_TRUE(vmm.freeze(address, size).ok());
    const vm::HostPlace place{fd, first * vm::kChunkBytes.value()};
    ASSERT_EQ(::pwrite(fd, address, size.to_size(), place.offset), size.value());
    ASSERT_TRUE(vmm.unback_showing(address, size, place).ok());
  }
};

TYPED_TEST_SUITE_P(HostVmmContract);

TYPED_TEST_P(HostVmmContract, MapsOneFileAtSeveralAddresses) {
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

TYPED_TEST_P(HostVmmContract, AFilesMemoryWithoutAccessKeepsItsBytes) {
  const vm::AddressRange range = this->reserve(3);
  vm::Vmm& vmm = this->maker_.vmm();
  const LaneFile file(3);
  ASSERT_TRUE(vmm.map_shared(range.base(), range.size(), file.fd(), Bytes{}).ok());
  std::memset(range.base(), 7, 3 * this->kChunk);
  std::byte* const middle = range.base() + this->kChunk;
  ASSERT_TRUE(vmm.forbid_access(middle, vm::kChunkBytes).ok());
  EXPECT_FALSE(is_readable(middle));
  EXPECT_TRUE(is_readable(range.base()) && is_readable(middle + this->kChunk));
  EXPECT_EQ(file.occupied(), vm::kChunkBytes * 3);
  ASSERT_TRUE(vmm.allow_access(middle, vm::kChunkBytes).ok());
  EXPECT_TRUE(this->is_filled_with(range.base(), 3 * this->kChunk, 7));
  std::memset(middle, 8, this->kChunk);
  ASSERT_TRUE(vmm.forbid_access(range.base(), range.size()).ok());
  ASSERT_TRUE(vmm.unmap_shared(range.base(), range.size()).ok()) << "the mapping may go as it is";
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  EXPECT_TRUE(this->is_filled_with(range.base(), 3 * this->kChunk, 0));
}

TYPED_TEST_P(HostVmmContract, UnbackingAFilesMemoryGivesItBackToTheDevice) {
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

TYPED_TEST_P(HostVmmContract, MakesAFilesMemoryPrivateInPlace) {
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

TYPED_TEST_P(HostVmmContract, SpilledMemoryShowsItsCopyAndTakesWrites) {
  const vm::AddressRange range = this->reserve(3);
  vm::Vmm& vmm = this->maker_.vmm();
  const UniqueFd fd = this->make_file(3);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  std::memset(range.base(), 7, 3 * this->kChunk);
  this->spill(range, 1, 1, fd.get());
  EXPECT_TRUE(this->is_filled_with(range.base(), 3 * this->kChunk, 7));
  range.base()[this->kChunk + 5] = std::byte{9};
  std::byte written{};
  ASSERT_EQ(::pread(fd.get(), &written, 1, static_cast<off_t>(this->kChunk + 5)), 1);
  EXPECT_EQ(written, std::byte{9});
}

TYPED_TEST_P(HostVmmContract, ShowsBytesOfTheHostTierWhereNothingWas) {
  const vm::AddressRange range = this->reserve(3);
  vm::Vmm& vmm = this->maker_.vmm();
  const UniqueFd fd = this->make_file(2);
  std::byte* const address = range.base() + this->kChunk;
  ASSERT_TRUE(vmm.show(address, vm::kChunkBytes * 2, {fd.get(), 0}).ok());
  std::memset(address, 7, 2 * this->kChunk);
  std::byte written{};
  ASSERT_EQ(::pread(fd.get(), &written, 1, vm::kChunkBytes.value()), 1);
  EXPECT_EQ(written, std::byte{7});

  ASSERT_TRUE(vmm.back_aside(address, vm::kChunkBytes).ok());
  std::memcpy(vmm.aside(address), address, this->kChunk);
  ASSERT_TRUE(vmm.bring_in(address, vm::kChunkBytes).ok());
  EXPECT_TRUE(this->is_filled_with(address, 2 * this->kChunk, 7));
  std::memset(address, 8, 2 * this->kChunk);
  ASSERT_EQ(::pread(fd.get(), &written, 1, 0), 1);
  EXPECT_EQ(written, std::byte{7}) << "it is memory of its own";
  ASSERT_EQ(::pread(fd.get(), &written, 1, vm::kChunkBytes.value()), 1);
  EXPECT_EQ(written, std::byte{8});
  ASSERT_TRUE(vmm.hide(address, vm::kChunkBytes * 2).ok());
  EXPECT_TRUE(this->is_filled_with(address, this->kChunk, 8)) << "what is backed stays";
}

TYPED_TEST_P(HostVmmContract, WhatIsBroughtInReplacesWhatWasShown) {
  const vm::AddressRange range = this->reserve(4);
  vm::Vmm& vmm = this->maker_.vmm();
  const UniqueFd fd = this->make_file(4);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  std::memset(range.base(), 7, 4 * this->kChunk);
  this->spill(range, 0, 4, fd.get());
  std::byte* const address = range.base() + this->kChunk;
  const Bytes size = vm::kChunkBytes * 2;
  ASSERT_TRUE(vmm.back_aside(address, size).ok());
  std::memset(vmm.aside(address), 8, size.to_size());
  EXPECT_TRUE(this->is_filled_with(range.base(), 4 * this->kChunk, 7)) << "not in place yet";
  ASSERT_TRUE(vmm.bring_in(address, size).ok());
  EXPECT_TRUE(this->is_filled_with(range.base(), this->kChunk, 7));
  EXPECT_TRUE(this->is_filled_with(address, 2 * this->kChunk, 8));
  EXPECT_TRUE(this->is_filled_with(range.base() + 3 * this->kChunk, this->kChunk, 7));
  std::memset(address, 9, size.to_size());
  std::byte copy{};
  ASSERT_EQ(::pread(fd.get(), &copy, 1, vm::kChunkBytes.value()), 1);
  EXPECT_EQ(copy, std::byte{7}) << "it is memory of its own";
  EXPECT_TRUE(vmm.unback(address, size).ok());
}

TYPED_TEST_P(HostVmmContract, MemoryAsideCanBeGivenUpAndWhatIsShownStays) {
  const vm::AddressRange range = this->reserve(2);
  vm::Vmm& vmm = this->maker_.vmm();
  const UniqueFd fd = this->make_file(2);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  std::memset(range.base(), 7, 2 * this->kChunk);
  this->spill(range, 0, 2, fd.get());
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(vmm.back_aside(range.base(), range.size()).ok());
    EXPECT_TRUE(this->is_filled_with(vmm.aside(range.base()), 2 * this->kChunk, 0));
    std::memset(vmm.aside(range.base()), 8, 2 * this->kChunk);
    vmm.unback_aside(range.base(), range.size());
  }
  EXPECT_TRUE(this->is_filled_with(range.base(), 2 * this->kChunk, 7));
  range.base()[0] = std::byte{9};
  EXPECT_EQ(range.base()[0], std::byte{9});
}

TYPED_TEST_P(HostVmmContract, BackingWhatIsShownGivesMemoryOfItsOwn) {
  const vm::AddressRange range = this->reserve(2);
  vm::Vmm& vmm = this->maker_.vmm();
  const UniqueFd fd = this->make_file(2);
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  std::memset(range.base(), 7, 2 * this->kChunk);
  this->spill(range, 0, 2, fd.get());
  ASSERT_TRUE(vmm.hide(range.base(), vm::kChunkBytes).ok());
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  EXPECT_TRUE(this->is_filled_with(range.base(), 2 * this->kChunk, 0));
  std::memset(range.base(), 9, 2 * this->kChunk);
  std::byte copy{};
  ASSERT_EQ(::pread(fd.get(), &copy, 1, vm::kChunkBytes.value()), 1);
  EXPECT_EQ(copy, std::byte{7});
  ASSERT_TRUE(vmm.hide(range.base(), range.size()).ok()) << "nothing is shown";
  EXPECT_TRUE(this->is_filled_with(range.base(), 2 * this->kChunk, 9));
}

TYPED_TEST_P(HostVmmContract, ThawedMemoryIsAsBefore) {
  const vm::AddressRange range = this->reserve(2);
  vm::Vmm& vmm = this->maker_.vmm();
  ASSERT_TRUE(vmm.back(range.base(), range.size()).ok());
  std::memset(range.base(), 7, 2 * this->kChunk);
  ASSERT_TRUE(vmm.freeze(range.base(), range.size()).ok());
  EXPECT_TRUE(this->is_filled_with(range.base(), 2 * this->kChunk, 7));
  vmm.thaw(range.base(), range.size());
  std::memset(range.base(), 8, 2 * this->kChunk);
  EXPECT_TRUE(this->is_filled_with(range.base(), 2 * this->kChunk, 8));
}

REGISTER_TYPED_TEST_SUITE_P(HostVmmContract,
                            MapsOneFileAtSeveralAddresses,
                            AFilesMemoryWithoutAccessKeepsItsBytes,
                            UnbackingAFilesMemoryGivesItBackToTheDevice,
                            MakesAFilesMemoryPrivateInPlace,
                            SpilledMemoryShowsItsCopyAndTakesWrites,
                            ShowsBytesOfTheHostTierWhereNothingWas,
                            WhatIsBroughtInReplacesWhatWasShown,
                            MemoryAsideCanBeGivenUpAndWhatIsShownStays,
                            BackingWhatIsShownGivesMemoryOfItsOwn,
                            ThawedMemoryIsAsBefore);

}  // namespace gpushare::testing
