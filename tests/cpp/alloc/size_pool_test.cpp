#include "csrc/alloc/blocks/size_pool.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::alloc {
namespace {

// Memory of which no byte is touched: a pool knows addresses only.
class Pool : public ::testing::Test {
 protected:
  static constexpr int kNumChunks = 8;

  void SetUp() override { pool_.add_segment(base(), chunks(kNumChunks)); }
  void TearDown() override { pool_.check_invariants(); }

  static std::byte* base() { return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40); }
  Segment& segment() { return *pool_.segments().front(); }
  void make(std::size_t index, ChunkState state) {
    books_.move(segment(), segment().chunk(index), state);
    pool_.recount_all();
  }
  Block* carve(Bytes size) {
    const SizePool::Candidate found = pool_.find(size);
    const ChunkRange range = segment().touched_by(found.block->address, size);
    for (std::size_t i = range.first; i < range.last; ++i) {
      if (segment().chunk(i).state == ChunkState::kUnbacked) make(i, ChunkState::kResident);
    }
    return pool_.carve(found.block, size, size);
  }
  void put_back(Block* block) { pool_.put_back(block, unneeded_); }

  BlockStore store_;
  Books books_{Bytes{INT64_MAX}};
  SizePool pool_{Route::kPrivate, SizeClass::kLarge, store_, books_};
  std::vector<UnneededCopy> unneeded_;
};

TEST_F(Pool, CountsWhatMustBeBackedUnderABlock) {
  EXPECT_EQ(pool_.find(mib(5)).num_missing, 3U);
  make(0, ChunkState::kResident);
  EXPECT_EQ(pool_.find(mib(5)).num_missing, 2U);
  EXPECT_EQ(pool_.find(mib(2)).num_missing, 0U);
  EXPECT_EQ(pool_.find(mib(17)).block, nullptr);
}

TEST_F(Pool, AmongBlocksThatAreNotAllResidentTheFewestMissingChunksWin) {
  Block* const low = carve(mib(6));
  Block* const keeper = carve(mib(2));
  put_back(low);
  for (std::size_t i = 0; i < 3; ++i)
    make(i, ChunkState::kUnbacked);
  // Free now: [0, 6) MiB, the better fit, and [8, 16) MiB; nothing of both is backed.
  EXPECT_EQ(pool_.find(mib(4)).block, low);
  make(4, ChunkState::kResident);
  EXPECT_EQ(pool_.find(mib(4)).block, keeper->next);
  EXPECT_EQ(pool_.find(mib(4)).num_missing, 1U);
  make(2, ChunkState::kResident);  // not under the first 4 MiB
  EXPECT_EQ(pool_.find(mib(4)).block, keeper->next);
  put_back(keeper);
}

TEST_F(Pool, AResidentBlockGoesBeforeABetterFitThatIsNot) {
  Block* const low = carve(mib(4));
  Block* const keeper = carve(mib(2));
  Block* const high = carve(mib(6));
  carve(mib(2));
  put_back(low);
  put_back(high);
  make(1, ChunkState::kUnbacked);
  EXPECT_EQ(pool_.find(mib(4)).block, high);
  EXPECT_EQ(pool_.find(mib(4)).num_missing, 0U);
  put_back(keeper);
}

TEST_F(Pool, SplitsAndJoins) {
  Block* const a = carve(mib(3));
  Block* const b = carve(mib(3));
  EXPECT_EQ(b->address, a->end());
  EXPECT_EQ(segment().chunk(1).num_live, 2U) << "the chunk that both touch";
  put_back(a);
  put_back(b);
  EXPECT_EQ(segment().first_block->size, segment().size());
  EXPECT_EQ(segment().first_block->next, nullptr);
}

TEST_F(Pool, PassesByBlocksOverSpilledOrMovingChunks) {
  Block* const low = carve(mib(3));
  Block* const keeper = carve(mib(3));
  Block* const after = carve(mib(4));
  put_back(low);  // [0, 3) MiB is free; chunk 1 is the keeper's as well
  put_back(after);
  for (const ChunkState state : {ChunkState::kSpilling, ChunkState::kSpilled,
                                 ChunkState::kRestoring, ChunkState::kResident}) {
    make(1, state);
    const Block* const found = pool_.find(mib(3)).block;
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found == low, state == ChunkState::kResident) << name_of(state);
    EXPECT_EQ(pool_.find(mib(2)).block->address, base()) << "which does not touch it";
  }
  put_back(keeper);
}

TEST_F(Pool, TheLastBlockInASpilledChunkTakesItsCopyAlong) {
  Block* const a = carve(mib(1) + kib(4));
  Block* const b = carve(mib(1) - kib(4));
  segment().chunk(0).slot = vm::SlotId{7};
  make(0, ChunkState::kSpilling);
  make(0, ChunkState::kSpilled);
  put_back(a);
  EXPECT_TRUE(unneeded_.empty());
  EXPECT_EQ(segment().chunk(0).state, ChunkState::kSpilled);
  put_back(b);
  ASSERT_EQ(unneeded_.size(), 1U);
  EXPECT_EQ(unneeded_[0].slot, vm::SlotId{7});
  EXPECT_EQ(segment().chunk(0).state, ChunkState::kUnbacked);
  EXPECT_EQ(books_.stats().spilled_bytes, Bytes{});
}

TEST_F(Pool, AMovingChunkKeepsItsStateWhenItsLastBlockDies) {
  Block* const a = carve(mib(2));
  make(0, ChunkState::kSpilling);
  put_back(a);
  EXPECT_EQ(segment().chunk(0).state, ChunkState::kSpilling);
  EXPECT_EQ(pool_.find(mib(16)).block, nullptr);
  make(0, ChunkState::kUnbacked);
}

TEST_F(Pool, TheNewestSegmentGoesOnlyWhenItIsUnused) {
  Block* const a = carve(mib(2));
  EXPECT_FALSE(pool_.remove_newest_segment());
  put_back(a);
  EXPECT_FALSE(pool_.remove_newest_segment()) << "its chunk is still backed";
  make(0, ChunkState::kUnbacked);
  EXPECT_TRUE(pool_.remove_newest_segment());
  EXPECT_TRUE(pool_.segments().empty());
}

using PoolDeathTest = Pool;

TEST_F(PoolDeathTest, AnImpossibleTransitionIsABug) {
  EXPECT_DEATH(books_.move(segment(), segment().chunk(0), ChunkState::kSpilled),
               "kUnbacked -> kSpilled");
}

}  // namespace
}  // namespace gpushare::alloc
