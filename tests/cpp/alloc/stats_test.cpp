// What memory_stats() says after programs whose figures can be counted by hand.
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"

#include "tests/cpp/support/vm_fake_vmm.h"

namespace gpushare::testing {
namespace {

using alloc::CachingAllocator;
using alloc::MemoryStats;

class Stats : public ::testing::Test {
 protected:
  void* take(Bytes size) { return allocator_->allocate(size).value(); }

  FakeVmm vmm_;
  std::unique_ptr<CachingAllocator> allocator_ =
      std::move(*CachingAllocator::create(vmm_, {.address_space = mib(512)}));
};

TEST_F(Stats, CountBlocksAndBytesByPool) {
  void* const small = take(Bytes{700});
  take(mib(3) + Bytes{1});
  MemoryStats stats = allocator_->stats();
  EXPECT_EQ(stats.allocation.all.current, 2);
  EXPECT_EQ(stats.allocation.small_pool.current, 1);
  EXPECT_EQ(stats.allocated_bytes.small_pool.current, 1024);
  EXPECT_EQ(stats.allocated_bytes.large_pool.current, (mib(3) + kib(4)).value());
  EXPECT_EQ(stats.requested_bytes.all.current, 700 + mib(3).value() + 1);
  EXPECT_EQ(stats.active.all.current, 2);
  EXPECT_EQ(stats.active_bytes.all.current, stats.allocated_bytes.all.current);
  EXPECT_EQ(stats.segment.all.current, 2);
  EXPECT_EQ(stats.reserved_bytes.all.current, mib(6).value());
  EXPECT_EQ(stats.num_operations, 2);

  allocator_->free(small);
  stats = allocator_->stats();
  EXPECT_EQ(stats.allocation.small_pool.current, 0);
  EXPECT_EQ(stats.allocation.small_pool.peak, 1);
  EXPECT_EQ(stats.allocation.small_pool.allocated, 1);
  EXPECT_EQ(stats.allocation.small_pool.freed, 1);
  EXPECT_EQ(stats.requested_bytes.small_pool.current, 0);
  EXPECT_EQ(stats.num_operations, 3);
  EXPECT_EQ(stats.segment.small_pool.current, 1) << "its chunk is kept";
}

TEST_F(Stats, ReservedIsAllocatedAndInactive) {
  void* const a = take(kib(100));
  take(kib(100));
  allocator_->free(a);
  const MemoryStats stats = allocator_->stats();
  EXPECT_EQ(stats.inactive_split_bytes.all.current, (mib(2) - kib(100)).value());
  EXPECT_EQ(stats.inactive_split.all.current, 2);  // the hole, and what is left of the segment
  EXPECT_EQ(stats.reserved_bytes.all.current,
            stats.active_bytes.all.current + stats.inactive_split_bytes.all.current);
}

TEST_F(Stats, AWhollyFreeSegmentIsNotSplit) {
  void* const a = take(mib(3));
  EXPECT_EQ(allocator_->stats().inactive_split.all.current, 1);
  allocator_->free(a);
  EXPECT_EQ(allocator_->stats().inactive_split.all.current, 0);
  EXPECT_EQ(allocator_->empty_cache(), mib(4));
  EXPECT_EQ(allocator_->stats().segment.all.current, 0);
  EXPECT_EQ(allocator_->stats().inactive_split_bytes.all.current, 0);
}

TEST_F(Stats, ResetsPeaksAndSums) {
  allocator_->free(take(mib(3)));
  allocator_->reset_peak_stats();
  EXPECT_EQ(allocator_->stats().allocated_bytes.all.peak, 0);
  EXPECT_EQ(allocator_->stats().reserved_bytes.all.peak, mib(4).value());
  allocator_->reset_accumulated_stats();
  EXPECT_EQ(allocator_->stats().allocated_bytes.all.allocated, 0);
  EXPECT_EQ(allocator_->stats().reserved_bytes.all.allocated, 0);
  EXPECT_EQ(allocator_->stats().reserved_bytes.all.current, mib(4).value());
}

// Now from the thread's cache, now from the pools: a peak is that of both together.
TEST_F(Stats, PeaksOfOneThreadAreExact) {
  allocator_->free(take(mib(20)));
  allocator_->reset_peak_stats();  // and all is in the pools, resident
  allocator_->free(take(mib(3)));
  void* const kept = take(mib(3));
  allocator_->free(kept);
  allocator_->free(take(mib(5)));
  EXPECT_EQ(allocator_->stats().allocated_bytes.all.peak, mib(5).value());
  allocator_->free(take(mib(3)));
  void* const a = take(mib(3));
  void* const b = take(mib(4));
  allocator_->free(a);
  allocator_->free(b);
  EXPECT_EQ(allocator_->stats().allocated_bytes.all.peak, mib(7).value());
  EXPECT_EQ(allocator_->stats().allocation.all.peak, 2);
}

TEST_F(Stats, SnapshotTilesItsSegments) {
  take(kib(1));
  void* const hole = take(kib(2));
  take(Bytes{3000});
  allocator_->free(hole);
  const std::vector<alloc::SegmentInfo> segments = allocator_->snapshot();
  ASSERT_EQ(segments.size(), 1U);
  EXPECT_EQ(segments[0].arena, "private");
  EXPECT_EQ(segments[0].pool, "small");
  EXPECT_EQ(segments[0].backed, mib(2));
  ASSERT_EQ(segments[0].blocks.size(), 4U);
  EXPECT_EQ(segments[0].blocks[2].requested, Bytes{3000});
  EXPECT_TRUE(segments[0].blocks[0].is_active);
  EXPECT_FALSE(segments[0].blocks[1].is_active);
  std::uintptr_t at = segments[0].address;
  for (const alloc::BlockInfo& block : segments[0].blocks) {
    EXPECT_EQ(block.address, at);
    at += block.size.to_size();
  }
  EXPECT_EQ(at, segments[0].address + segments[0].total_size.to_size());
}

}  // namespace
}  // namespace gpushare::testing
