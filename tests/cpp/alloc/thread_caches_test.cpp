// The allocator with the caches of several threads, one of which runs at a time: what they keep is
// never in the way.
#include "csrc/alloc/caches/thread_caches.h"

#include <pthread.h>

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"

#include "tests/cpp/support/alloc_worker.h"
#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::Route;

// A world in which a worker allocates and frees too.
class WithWorker : public ::testing::Test {
 protected:
  void TearDown() override { world_.allocator->check_invariants(); }
  void* take(Bytes size) { return world_.allocator->allocate(size).value_or(nullptr); }
  void give(void* address) { world_.allocator->free(address); }
  void* take_there(Bytes size) {
    void* address = nullptr;
    worker_.run([&] { address = take(size); });
    return address;
  }
  void give_there(void* address) {
    worker_.run([&] { give(address); });
  }

  World world_{mib(16)};
  Worker worker_;
};

TEST_F(WithWorker, ABlockMayDieInAnotherThread) {
  void* const block = take(kib(4));
  give_there(block);
  EXPECT_EQ(take_there(kib(4)), block) << "who freed it last has it";
  give(block);
  EXPECT_EQ(take(kib(4)), block);
  give(block);
  const alloc::MemoryStats stats = world_.allocator->stats();
  EXPECT_EQ(stats.allocation.all.current, 0);
  EXPECT_EQ(stats.allocation.all.peak, 1);
  EXPECT_EQ(stats.allocation.all.allocated, 3);
  EXPECT_EQ(stats.num_operations, 6);
}

TEST_F(WithWorker, FiguresAreExactWhileThreadsKeepBlocks) {
  void* const a = take(mib(3));
  void* const b = take_there(kib(7));
  give_there(a);
  give(b);
  const alloc::MemoryStats stats = world_.allocator->stats();
  EXPECT_EQ(stats.allocated_bytes.all.current, 0);
  EXPECT_EQ(stats.requested_bytes.large_pool.freed, mib(3).value());
  EXPECT_EQ(stats.inactive_split.all.current, 0) << "free blocks have joined";
  EXPECT_EQ(stats.live_private_bytes, Bytes{});
  for (const alloc::SegmentInfo& segment : world_.allocator->snapshot())
    EXPECT_EQ(segment.blocks.size(), 1U);
}

TEST_F(WithWorker, LiveBytesAreExactAndTheThreadsKeepTheirBlocks) {
  void* const a = take(mib(3));
  void* const b = take_there(kib(8));
  EXPECT_EQ(world_.allocator->live_private(), mib(3) + kib(8));
  give_there(a);
  give(b);
  EXPECT_EQ(world_.allocator->live_private(), Bytes{});
  EXPECT_EQ(take(kib(8)), b) << "the figure took it from the thread that keeps it";
  EXPECT_EQ(world_.allocator->live_private(), kib(8));
  EXPECT_EQ(world_.allocator->stats().live_private_bytes, kib(8));
  give(b);
}

TEST_F(WithWorker, WhatAThreadKeepsIsUsedByOthersBeforeMoreIsBacked) {
  void* const a = take_there(mib(8));
  void* const b = take_there(mib(8));
  give_there(a);
  give_there(b);
  EXPECT_NE(take(mib(12)), nullptr) << "there is no room for more than they keep";
  EXPECT_LE(world_.vmm.most_backed(), mib(16));
}

TEST_F(WithWorker, ClosingTakesPrivateBlocksFromEveryThread) {
  void* const here = take(kib(4));
  void* const there = take_there(kib(4));
  give(here);
  give_there(there);
  world_.allocator->set_route(Route::kOutside);
  for (void* const address : {take(kib(4)), take_there(kib(4))}) {
    EXPECT_NE(address, here);
    EXPECT_NE(address, there);
    give_there(address);
  }
  world_.allocator->set_route(Route::kPrivate);
  const alloc::MemoryStats stats = world_.allocator->stats();
  EXPECT_EQ(stats.allocation.all.current, 0);
  void* const again = take_there(kib(4));
  EXPECT_TRUE(again == here || again == there) << "it comes from the private arena";
}

TEST_F(WithWorker, PrivateBlocksThatDieWhileTheRouteIsOutsideAreNotHandedOut) {
  void* const block = take(kib(4));
  world_.allocator->set_route(Route::kOutside);
  give(take(kib(4)));
  give(block);
  EXPECT_NE(take(kib(4)), block);
  EXPECT_NE(take(kib(4)), block);
}

TEST_F(WithWorker, KeptBlocksAreDroppedAndNotSpilled) {
  ASSERT_TRUE(world_.take(kib(4)));
  void* const dead = take_there(mib(4));
  give_there(dead);
  world_.allocator->set_route(Route::kOutside);
  void* const outside = take_there(mib(2));
  give_there(outside);
  const alloc::ReleaseOutcome outcome = world_.residency.release(mib(16), true);
  EXPECT_EQ(outcome.spilled, mib(2));
  EXPECT_EQ(outcome.released, mib(16));
  EXPECT_EQ(world_.vmm.backed(), Bytes{});
}

TEST_F(WithWorker, EmptyCacheDropsWhatThreadsKeep) {
  give_there(take_there(mib(4)));
  EXPECT_EQ(world_.allocator->empty_cache(), mib(4));
}

// The route is open, but a part of the arena is away: as after a restore that failed.
TEST_F(WithWorker, NoBlockOverASpilledChunkIsKept) {
  void* const block = take(mib(3));
  world_.allocator->set_route(Route::kOutside);
  world_.residency.release(mib(16), true);
  world_.allocator->raise_room(mib(16));
  world_.allocator->set_route(Route::kPrivate);
  give(block);
  void* const next = take(mib(3));
  EXPECT_TRUE(world_.vmm.is_backed(next, mib(3)));
}

TEST_F(WithWorker, AThreadThatEndsGivesItsBlocksBack) {
  void* const block = take_there(mib(3));
  take(mib(2));  // between the two, so that they do not join
  void* const larger = take(mib(6));
  give(larger);
  static_cast<void>(world_.allocator->stats());  // to the pools, where the worse fit is now
  give_there(block);
  worker_.end();
  EXPECT_EQ(take(mib(3)), block);
}

struct Late {
  alloc::CachingAllocator* allocator;
  void* block;
};

// A destructor of the thread that runs after its cache has gone: the key is younger.
TEST_F(WithWorker, AThreadMayFreeAfterItsCacheHasGone) {
  pthread_key_t key{};
  ASSERT_EQ(::pthread_key_create(&key,
                                 [](void* value) {
                                   const auto* const late = static_cast<Late*>(value);
                                   late->allocator->free(late->block);
                                   late->allocator->free(*late->allocator->allocate(kib(1)));
                                 }),
            0);
  Late late{world_.allocator.get(), take_there(kib(4))};
  worker_.run([&] { ::pthread_setspecific(key, &late); });
  worker_.end();
  ::pthread_key_delete(key);
  EXPECT_EQ(world_.allocator->stats().allocation.all.current, 0);
  EXPECT_EQ(world_.allocator->empty_cache(), mib(2));
}

TEST_F(WithWorker, APeakIsOffByWhatOtherThreadsHaveNotToldAtMost) {
  give_there(take_there(mib(4)));
  give_there(take_there(mib(4)));  // from its cache: nobody was told
  give(take(mib(8)));
  const std::int64_t peak = world_.allocator->stats().allocated_bytes.all.peak;
  EXPECT_GE(peak, mib(8).value());
  EXPECT_LE(peak, (mib(8) + alloc::ThreadCache::kMostLarge).value());
}

using WithWorkerDeathTest = WithWorker;

TEST_F(WithWorkerDeathTest, FreeingWhatAnotherThreadKeepsIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the worker is a thread
  void* const block = take(kib(4));
  give_there(block);
  EXPECT_DEATH(give(block), "no block is live");
}

}  // namespace
}  // namespace gpushare::testing
