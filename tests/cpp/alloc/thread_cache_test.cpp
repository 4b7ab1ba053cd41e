#include "csrc/alloc/caches/thread_cache.h"

#include <rapidcheck.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gpushare::alloc {
namespace {

using Kept = ThreadCache::Kept;

// Live blocks as a pool hands them out, over memory of which no byte is touched.
class Blocks {
 public:
  Block* make(Bytes requested, Route arena = Route::kPrivate) {
    Block* const block = store_.take();
    block->address = next_;
    block->size = block_size_of(requested);
    block->requested = requested;
    block->arena = arena;
    block->is_live = true;
    next_ += block->size.to_size();
    return block;
  }

 private:
  BlockStore store_;
  std::byte* next_ = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
};

class Cache : public ::testing::Test {
 protected:
  void TearDown() override {
    SpinLockGuard guard(cache_.lock);
    cache_.check_invariants();
  }
  void* take(Bytes size) { return cache_.take(block_size_of(size), size); }
  ThreadCache::Contents take_all() {
    SpinLockGuard guard(cache_.lock);
    return cache_.take_all();
  }

  Blocks blocks_;
  ThreadCache cache_{Route::kPrivate};
};

TEST_F(Cache, HandsOutTheBlockOfThatSizeThatWasFreedLast) {
  Block* const a = blocks_.make(kib(4));
  Block* const b = blocks_.make(kib(4));
  EXPECT_EQ(take(kib(4)), nullptr);
  EXPECT_EQ(cache_.keep(a), Kept::kYes);
  EXPECT_EQ(cache_.keep(b), Kept::kYes);
  EXPECT_EQ(take(kib(4) + Bytes{1}), nullptr);
  EXPECT_EQ(take(Bytes{3500}), nullptr);
  EXPECT_EQ(take(kib(4)), b->address);
  EXPECT_EQ(take(kib(4) - Bytes{511}), a->address);
  EXPECT_EQ(a->requested, kib(4) - Bytes{511});
  EXPECT_EQ(take(kib(4)), nullptr);
}

TEST_F(Cache, SizesOfOneBinAreNotMixedUp) {
  Block* const low = blocks_.make(mib(4));
  Block* const high = blocks_.make(mib(4) + kib(4));
  cache_.keep(low);
  cache_.keep(high);
  EXPECT_EQ(take(mib(4)), nullptr) << "it is below the other";
  EXPECT_EQ(take(mib(4) + kib(4)), high->address);
  EXPECT_EQ(take(mib(4)), low->address);
}

TEST_F(Cache, KeepsBlocksOfItsArenaOnly) {
  EXPECT_EQ(cache_.keep(blocks_.make(kib(1), Route::kOutside)), Kept::kRefused);
  {
    SpinLockGuard guard(cache_.lock);
    cache_.set_arena(std::nullopt);
  }
  EXPECT_EQ(cache_.keep(blocks_.make(kib(1))), Kept::kRefused);
  EXPECT_EQ(take(kib(1)), nullptr);
}

TEST_F(Cache, IsFullByBytesOfEachSizeClassAndByCount) {
  EXPECT_EQ(cache_.keep(blocks_.make(ThreadCache::kMostLarge + Bytes{1})), Kept::kRefused);
  EXPECT_EQ(cache_.keep(blocks_.make(ThreadCache::kMostLarge)), Kept::kYes);
  EXPECT_EQ(cache_.keep(blocks_.make(mib(1) + Bytes{1})), Kept::kFull);
  EXPECT_EQ(cache_.keep(blocks_.make(ThreadCache::kMostSmall)), Kept::kYes);
  EXPECT_EQ(cache_.keep(blocks_.make(Bytes{1})), Kept::kFull);
  take_all();
  for (std::uint32_t i = 0; i < ThreadCache::kMostBlocks; ++i)
    EXPECT_EQ(cache_.keep(blocks_.make(Bytes{1})), Kept::kYes);
  EXPECT_EQ(cache_.keep(blocks_.make(mib(2))), Kept::kFull);
}

TEST_F(Cache, GivesUpAllItKeepsAndTellsWhatItDid) {
  cache_.keep(blocks_.make(kib(1)));
  cache_.keep(blocks_.make(mib(2)));
  take(kib(1));
  const ThreadCache::Contents contents = take_all();
  ASSERT_NE(contents.first, nullptr);
  EXPECT_EQ(contents.first->size, mib(2));
  EXPECT_FALSE(contents.first->is_cached);
  EXPECT_EQ(contents.first->left, nullptr);
  EXPECT_EQ(contents.tally.num_operations(), 3);
  EXPECT_EQ(contents.tally.all().bytes.current, -mib(2).value());
  EXPECT_EQ(take(mib(2)), nullptr);
  EXPECT_EQ(take_all().tally.num_operations(), 0);
}

using CacheDeathTest = Cache;

TEST_F(CacheDeathTest, KeepingTwiceIsABug) {
  Block* const block = blocks_.make(kib(1));
  cache_.keep(block);
  EXPECT_DEATH(cache_.keep(block), "no block is live");
}

TEST_F(CacheDeathTest, TheArenaOfKeptBlocksCannotChange) {
  cache_.keep(blocks_.make(kib(1)));
  SpinLockGuard guard(cache_.lock);
  EXPECT_DEATH(cache_.set_arena(Route::kOutside), "1 blocks");
}

// Against stacks by size: whatever it hands out is what the model would, or nothing.
RC_GTEST_PROP(CacheModel, HandsOutEachKeptBlockOnce, ()) {
  const std::vector<Bytes> sizes{Bytes{64}, Bytes{600}, kib(200), kib(201), mib(3), mib(9)};
  Blocks blocks;
  ThreadCache cache{Route::kPrivate};
  std::vector<Block*> live;
  std::map<Bytes, std::vector<Block*>> kept;
  const int num_steps = *rc::gen::inRange(0, 400);
  for (int i = 0; i < num_steps; ++i) {
    const Bytes size = *rc::gen::elementOf(sizes);
    if (live.empty() || *rc::gen::arbitrary<bool>()) {
      void* const address = cache.take(block_size_of(size), size);
      std::vector<Block*>& stack = kept[size];
      if (address == nullptr) {
        live.push_back(blocks.make(size));
        continue;
      }
      RC_ASSERT(!stack.empty() && stack.back()->address == address);
      live.push_back(stack.back());
      stack.pop_back();
    } else {
      const std::size_t index = *rc::gen::inRange<std::size_t>(0, live.size());
      if (cache.keep(live[index]) == Kept::kYes)
        kept[live[index]->requested].push_back(live[index]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
    }
    SpinLockGuard guard(cache.lock);
    cache.check_invariants();
  }
}

}  // namespace
}  // namespace gpushare::alloc
