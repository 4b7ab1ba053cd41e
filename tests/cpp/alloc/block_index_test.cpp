#include "csrc/alloc/blocks/block_index.h"

#include <rapidcheck.h>

#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gpushare::alloc {
namespace {

// Memory of which no byte is touched: an index knows addresses only.
std::byte* base() { return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40); }

Block block_at(std::byte* address, Bytes size) {
  Block block;
  block.address = address;
  block.size = size;
  return block;
}

TEST(BlockIndex, FindsNothingWhereNoBlockBegins) {
  BlockIndex index(base(), chunks(2));
  EXPECT_EQ(index.find(base()), nullptr);
  Block block = block_at(base() + 1024, Bytes{1024});
  index.set(&block);
  EXPECT_EQ(index.find(base() + 1024), &block);
  for (const int offset : {512, 1023, 1025, 1536, 2048, 2 << 20})
    EXPECT_EQ(index.find(base() + offset), nullptr) << offset;
  index.clear(&block);
  EXPECT_EQ(index.find(base() + 1024), nullptr);
}

TEST(BlockIndex, AChunkMayComeAgainAsTheOtherSizeClass) {
  BlockIndex index(base(), chunks(2));
  Block large = block_at(base() + 4096, mib(1) + kib(4));
  index.set(&large);
  index.clear(&large);
  std::vector<Block> small;
  for (int i = 0; i < 16; ++i)
    small.push_back(block_at(base() + 512 * i, Bytes{512}));
  for (Block& block : small)
    index.set(&block);
  for (Block& block : small)
    EXPECT_EQ(index.find(block.address), &block);
}

RC_GTEST_PROP(BlockIndex, AgreesWithAnOrderedMap, ()) {
  constexpr std::uint64_t kBlocks = 3 * 4096;  // of 512 B in three chunks
  BlockStore store;
  BlockIndex index(base(), chunks(3));
  std::map<std::uint64_t, Block*> model;
  const auto steps = *rc::gen::container<std::vector<std::uint64_t>>(
      1000, rc::gen::inRange<std::uint64_t>(0, kBlocks));
  for (const std::uint64_t step : steps) {
    const std::uint64_t n = step % 37 * (kBlocks / 37);  // each comes often
    if (const auto found = model.find(n); found != model.end()) {
      index.clear(found->second);
      store.give_back(found->second);
      model.erase(found);
    } else {
      Block* const block = store.take();
      block->address = base() + n * 512;
      block->size = Bytes{512};
      index.set(block);
      model.emplace(n, block);
    }
    RC_ASSERT(index.size() == model.size());
  }
  for (std::uint64_t n = 0; n < kBlocks; ++n) {
    const auto found = model.find(n);
    RC_ASSERT(index.find(base() + n * 512) == (found == model.end() ? nullptr : found->second));
  }
}

}  // namespace
}  // namespace gpushare::alloc
