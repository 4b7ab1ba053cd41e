#include "csrc/alloc/block_map.h"

#include <rapidcheck.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gpushare::alloc {
namespace {

std::byte* address_number(std::uint64_t n) { return reinterpret_cast<std::byte*>(n * 512); }

TEST(BlockMap, FindsNothingInAnEmptyMap) {
  BlockMap map;
  EXPECT_EQ(map.find(address_number(3)), nullptr);
  EXPECT_EQ(map.extract(address_number(3)), nullptr);
}

// Against std::map, with addresses so close and so many that clusters form and the table grows.
RC_GTEST_PROP(BlockMap, AgreesWithAnOrderedMap, ()) {
  BlockStore store;
  BlockMap map;
  std::map<std::uint64_t, Block*> model;
  const auto steps = *rc::gen::container<std::vector<std::uint64_t>>(
      3000, rc::gen::inRange<std::uint64_t>(1, 2500));
  for (const std::uint64_t n : steps) {
    if (const auto found = model.find(n); found != model.end()) {
      RC_ASSERT(map.extract(address_number(n)) == found->second);
      store.give_back(found->second);
      model.erase(found);
    } else {
      Block* const block = store.take();
      block->address = address_number(n);
      map.insert(block);
      model.emplace(n, block);
    }
    RC_ASSERT(map.size() == model.size());
  }
  for (std::uint64_t n = 1; n < 2500; ++n) {
    const auto found = model.find(n);
    RC_ASSERT(map.find(address_number(n)) == (found == model.end() ? nullptr : found->second));
  }
}

}  // namespace
}  // namespace gpushare::alloc
