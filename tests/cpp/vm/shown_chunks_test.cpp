#include "csrc/vm/host/shown_chunks.h"

#include <cstddef>

#include <gtest/gtest.h>

namespace gpushare::testing {
namespace {

using vm::kChunkBytes;

// Only compared, never looked at.
const std::byte* chunk(std::int64_t number) {
  return reinterpret_cast<const std::byte*>((number + 8) * kChunkBytes.value());
}
vm::HostPlace place(std::int64_t number) { return {3, number * kChunkBytes.value()}; }

TEST(ShownChunks, NeighboursThatShowNeighboursAreOneRun) {
  vm::ShownChunks shown;
  EXPECT_TRUE(shown.is_empty());
  shown.add(chunk(0), kChunkBytes * 2, place(5));
  shown.add(chunk(3), kChunkBytes, place(8));
  EXPECT_EQ(shown.num_runs(), 2);
  shown.add(chunk(2), kChunkBytes, place(7));
  EXPECT_EQ(shown.num_runs(), 1);
  shown.add(chunk(4), kChunkBytes, place(0));
  EXPECT_EQ(shown.num_runs(), 2) << "a neighbour, but not its bytes";
  shown.add(chunk(5), kChunkBytes, {4, kChunkBytes.value()});
  EXPECT_EQ(shown.num_runs(), 3) << "of another file";
}

TEST(ShownChunks, TakingOneOutOfTheMiddleMakesTwo) {
  vm::ShownChunks shown;
  shown.add(chunk(0), kChunkBytes * 3, place(0));
  shown.remove(chunk(1), kChunkBytes);
  EXPECT_EQ(shown.num_runs(), 2);
  EXPECT_TRUE(shown.contains(chunk(0)));
  EXPECT_FALSE(shown.contains(chunk(1)));
  EXPECT_FALSE(shown.has_any(chunk(1), kChunkBytes));
  EXPECT_TRUE(shown.has_any(chunk(1), kChunkBytes * 2));
  shown.remove(chunk(0), kChunkBytes * 4);
  EXPECT_EQ(shown.num_runs(), 0);
  EXPECT_TRUE(shown.is_empty());
}

}  // namespace
}  // namespace gpushare::testing
