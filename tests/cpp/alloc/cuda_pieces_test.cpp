// Residency over a CUDA device that takes memory back only in pieces: what leaves, what must leave
// with it, and that no byte is lost by it.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/allocator/segment_store.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/vm/cuda/cuda_pinner.h"
#include "csrc/vm/mover.h"

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/readable.h"
#include "tests/cpp/support/vm_cuda_world.h"

namespace gpushare::testing {
namespace {

constexpr Bytes kDevice = mib(256);

// What torch asks for, and when the gate is closed. With the parameter the device can use the host
// tier in place.
class Pieces : public ::testing::TestWithParam<bool> {
 protected:
  ~Pieces() override {
    for (const Live& segment : live_)
      store_.give_back(segment.address);
  }

  struct Live {
    std::byte* address;
    Bytes size;
    std::size_t seed;
  };

  std::byte* take(Bytes size) {
    auto* const address = static_cast<std::byte*>(store_.take(size).value());
    live_.push_back({address, size, ++last_seed_});
    fill(address, size, last_seed_);
    return address;
  }
  void give_back(std::byte* address) {
    const auto found = std::find_if(live_.begin(), live_.end(), [address](const Live& segment) {
      return segment.address == address;
    });
    ASSERT_NE(found, live_.end());
    live_.erase(found);
    ASSERT_TRUE(store_.give_back(address));
  }
  // Torch has something in all of it, but for the ends of some segments.
  void close(const std::vector<alloc::ByteSpan>& unused = {}) {
    unused_ = unused;
    allocator_->set_route(alloc::Route::kOutside);
    alloc::MemoryUse use;
    for (const Live& segment : live_) {
      use.movable.push_back({segment.address, segment.size});
      Bytes size = segment.size;
      for (const alloc::ByteSpan& end : unused) {
        if (end.end() == segment.address + segment.size.to_size()) size -= end.size;
      }
      if (size > Bytes{}) use.used.push_back({segment.address, size});
    }
    allocator_->note_use(use);
  }
  // What was unused comes back with any contents.
  void fill_unused() {
    for (const Live& segment : live_) {
      if (expect_used_part(segment)) fill(segment.address, segment.size, segment.seed);
    }
  }
  // Whether a part of it is unused.
  bool expect_used_part(const Live& segment) {
    for (const alloc::ByteSpan& end : unused_) {
      if (end.end() != segment.address + segment.size.to_size()) continue;
      const Bytes used = segment.size - end.size;
      // As far as the last mark: fill() has one more at the very end.
      const Bytes marked = used - kib(4) + Bytes{8};
      EXPECT_TRUE(used == Bytes{} || is_filled(segment.address, marked, segment.seed));
      return true;
    }
    return false;
  }
  // Wherever the bytes are.
  void expect_reachable() {
    for (const Live& segment : live_) {
      if (!GetParam() || expect_used_part(segment)) continue;
      EXPECT_TRUE(is_filled(segment.address, segment.size, segment.seed)) << segment.seed;
    }
  }
  void open() {
    allocator_->raise_room(kDevice);
    const Status restored = residency_.restore();
    ASSERT_TRUE(restored.ok()) << restored.message();
    allocator_->set_route(alloc::Route::kPrivate);
  }
  void expect_intact() {
    allocator_->check_invariants();
    for (const Live& segment : live_)
      EXPECT_TRUE(is_filled(segment.address, segment.size, segment.seed)) << segment.seed;
    EXPECT_EQ(slab_->used(), Bytes{});
    EXPECT_EQ(allocator_->backed(), cuda_.fake.used());
  }

  CudaWorld cuda_{{.most_piece = mib(16)}, kDevice, GetParam()};
  vm::CudaPinner pinner_{*cuda_.device, true};
  const std::unique_ptr<vm::HostSlab> slab_ =
      std::move(*vm::make_host_slab("", {gib(1), {}}, &pinner_));
  vm::Mover mover_;
  const std::unique_ptr<alloc::CachingAllocator> allocator_ =
      std::move(*alloc::CachingAllocator::create(cuda_.vmm, {gib(4), kDevice}));
  alloc::Residency residency_{*allocator_, *slab_, mover_};
  alloc::SegmentStore store_{*allocator_};
  std::vector<Live> live_;
  std::vector<alloc::ByteSpan> unused_;
  std::size_t last_seed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(All,
                         Pieces,
                         ::testing::Bool(),
                         [](const ::testing::TestParamInfo<bool>& mode) {
                           return mode.param ? "Reachable" : "Unmapped";
                         });

TEST_P(Pieces, ASegmentGoesBackAtOnceAlsoAfterItCameBackWithItsNeighbours) {
  take(mib(20));
  std::byte* const second = take(mib(20));
  take(mib(6));
  take(mib(2));
  close();
  ASSERT_EQ(residency_.release(kDevice, true).spilled, mib(48));
  open();
  expect_intact();
  give_back(second);
  EXPECT_EQ(cuda_.fake.used(), mib(28));
  expect_intact();
}

TEST_P(Pieces, SmallSegmentsShareNone) {
  for (int i = 0; i < 8; ++i)
    take(mib(2));
  close();
  ASSERT_EQ(residency_.release(kDevice, true).spilled, mib(16));
  open();
  expect_intact();
  allocator_->set_room(mib(16));
  for (std::size_t i = 0; i < 4; ++i)
    give_back(live_[i].address);
  EXPECT_EQ(cuda_.fake.used(), mib(8));
  take(mib(8));  // in the room of the four
  expect_intact();
}

TEST_P(Pieces, MoreIsReleasedThanAskedForRatherThanLess) {
  take(mib(64));
  allocator_->set_room(mib(64));
  close();
  const alloc::ReleaseOutcome outcome = residency_.release(mib(2), true);
  EXPECT_EQ(outcome.released, mib(16));
  EXPECT_EQ(outcome.spilled, mib(16));
  EXPECT_EQ(outcome.reason, "");
  EXPECT_EQ(allocator_->room(), mib(48));
  open();
  expect_intact();
}

TEST_P(Pieces, ALimitThatEndsAmidAPieceLeavesItWhole) {
  take(mib(64));
  allocator_->set_room(mib(64));
  close();
  const alloc::ReleaseOutcome outcome =
      residency_.release(mib(40), true, {}, {.ram = mib(40), .file = {}});
  EXPECT_EQ(outcome.spilled, mib(32));
  EXPECT_EQ(outcome.unplaced, mib(8));
  EXPECT_EQ(slab_->used(), mib(32));
  EXPECT_EQ(cuda_.fake.used(), mib(32));
  open();
  expect_intact();
}

TEST_P(Pieces, WhatHoldsNothingLeavesWithoutACopyAlsoBesideWhatDoes) {
  std::byte* const segment = take(mib(32));
  close({{segment + mib(4).to_size(), mib(28)}});
  const int num_copies = cuda_.fake.num_calls("copy_out");
  const alloc::ReleaseOutcome outcome = residency_.release(kDevice, true);
  EXPECT_EQ(outcome.spilled, mib(4));
  EXPECT_EQ(outcome.dropped, mib(28));
  EXPECT_EQ(slab_->used(), mib(4));
  EXPECT_EQ(cuda_.fake.num_calls("copy_out") - num_copies, 1);
  EXPECT_EQ(cuda_.fake.used(), Bytes{});
  expect_reachable();
  open();
  fill_unused();
  expect_intact();
}

TEST_P(Pieces, WhatHoldsNothingShowsNothing) {
  std::byte* const segment = take(mib(6));
  alloc::MemoryUse use;
  use.movable.push_back({segment, mib(6)});
  use.used.push_back({segment, mib(2)});
  use.used.push_back({segment + mib(4).to_size(), mib(2)});
  const auto fill_chunks = [&] {
    for (const std::int64_t at : {0, 2, 4})
      segment[mib(at).to_size() + 100] = std::byte(at + 1);
  };
  fill_chunks();
  allocator_->set_route(alloc::Route::kOutside);
  allocator_->note_use(use);
  ASSERT_EQ(residency_.release(kDevice, true).spilled, mib(4));
  for (const std::int64_t at : {0, 2, 4}) {
    const std::byte* const byte = segment + mib(at).to_size() + 100;
    EXPECT_EQ(is_readable(byte), GetParam() && at != 2) << at;
    if (is_readable(byte)) {
      EXPECT_EQ(*byte, std::byte(at + 1)) << "not a neighbour's";
    }
  }
  open();
  EXPECT_EQ(segment[mib(4).to_size() + 100], std::byte{5});
  fill(segment, mib(6), live_[0].seed);
  expect_intact();
}

TEST_P(Pieces, WhatDiesWhileTheGateIsClosedLeavesToo) {
  take(mib(20));
  std::byte* const unused = take(mib(20));
  close({{unused, mib(20)}});
  give_back(unused);
  EXPECT_EQ(cuda_.fake.used(), mib(20));
  ASSERT_EQ(residency_.release(kDevice, true).spilled, mib(20));
  give_back(live_[0].address);
  allocator_->check_invariants();
  EXPECT_EQ(residency_.to_restore(), Bytes{});
  open();
  expect_intact();
}

TEST_P(Pieces, NothingIsLostInAnyOrderOfGivingAndTaking) {
  constexpr unsigned kRounds = 60;
  std::mt19937 random(20261122);  // NOLINT(cert-msc51-cpp): the same each time
  const auto any = [&random](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  for (unsigned round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    for (int i = any(0, 6); i > 0 && allocator_->backed() < mib(160); --i)
      take(vm::kChunkBytes * (any(0, 1) == 0 ? 1 : any(1, 20)));
    for (int i = any(0, 4); i > 0 && !live_.empty(); --i)
      give_back(
          live_[static_cast<std::size_t>(any(0, static_cast<int>(live_.size()) - 1))].address);
    allocator_->set_room(std::max(allocator_->backed(), vm::kChunkBytes));
    std::vector<alloc::ByteSpan> unused;
    for (const Live& segment : live_) {
      const Bytes size = std::min(segment.size, vm::kChunkBytes * any(0, 12));
      if (size > Bytes{} && any(0, 2) == 0) {
        unused.push_back({segment.address + (segment.size - size).to_size(), size});
      }
    }
    close(unused);
    for (int i = any(1, 3); i > 0; --i) {
      const Bytes room = allocator_->room();
      if (room == Bytes{}) break;
      const Bytes asked = std::min(room, vm::kChunkBytes * any(1, 60));
      const HostBytes most{.ram = vm::kChunkBytes * any(0, 80), .file = {}};
      const alloc::ReleaseOutcome outcome = residency_.release(asked, true, {}, most);
      EXPECT_TRUE(outcome.released >= asked || !outcome.reason.empty());
      EXPECT_LE(outcome.spilled, most.ram);
      EXPECT_EQ(allocator_->room(), room - outcome.released);
      EXPECT_EQ(allocator_->backed(), cuda_.fake.used());
      allocator_->check_invariants();
      expect_reachable();
      if (!live_.empty() && any(0, 2) == 0) {
        give_back(
            live_[static_cast<std::size_t>(any(0, static_cast<int>(live_.size()) - 1))].address);
      }
    }
    open();
    fill_unused();
    expect_intact();
  }
}

}  // namespace
}  // namespace gpushare::testing
