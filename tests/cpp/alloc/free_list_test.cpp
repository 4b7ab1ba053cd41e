#include "csrc/alloc/blocks/free_list.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gpushare::alloc {
namespace {

// The same list without any idea: every search looks at every block.
class QuadraticList {
 public:
  void insert(Block* block) { blocks_.push_back(block); }
  void erase(Block* block) { std::erase(blocks_, block); }
  [[nodiscard]] Block* best_fit(Bytes size) const {
    Block* best = nullptr;
    for (Block* block : blocks_) {
      if (block->size < size) continue;
      if (best == nullptr || block->size < best->size ||
          (block->size == best->size && block->address < best->address)) {
        best = block;
      }
    }
    return best;
  }
  [[nodiscard]] const std::vector<Block*>& blocks() const { return blocks_; }

 private:
  std::vector<Block*> blocks_;
};

// Sizes as programs have them: few of each, many alike, and some huge.
rc::Gen<std::int64_t> units() {
  return rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 20),
                        rc::gen::inRange<std::int64_t>(1, 3000),
                        rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 34));
}

void compare_a_program(SizeClass size_class) {
  const std::int64_t unit = unit_of(size_class).value();
  FreeList list(size_class);
  QuadraticList model;
  std::vector<std::unique_ptr<Block>> owner;
  const auto num_steps = *rc::gen::inRange(0, 200);
  for (int i = 0; i < num_steps; ++i) {
    if (!model.blocks().empty() && *rc::gen::inRange(0, 3) == 0) {
      Block* const block = *rc::gen::elementOf(model.blocks());
      list.erase(block);
      model.erase(block);
    } else {
      owner.push_back(std::make_unique<Block>());
      Block* const block = owner.back().get();
      // Any order of addresses, each once.
      block->address = reinterpret_cast<std::byte*>((i * 7919 % 10007 + 1) * 4096);
      block->size = Bytes{*units() * unit};
      list.insert(block);
      model.insert(block);
    }
    const Bytes wanted{*units() * unit};
    RC_ASSERT(list.best_fit(wanted) == model.best_fit(wanted));
    RC_ASSERT(list.size() == model.blocks().size());
  }
  list.check_invariants();
  const Bytes least{*units() * unit};
  std::vector<Block*> expected;
  for (Block* block : model.blocks()) {
    if (block->size >= least) expected.push_back(block);
  }
  std::sort(expected.begin(), expected.end(), is_better_fit);
  RC_ASSERT(list.at_least(least) == expected);
}

RC_GTEST_PROP(FreeList, AgreesWithAQuadraticSearchOverSmallBlocks, ()) {
  compare_a_program(SizeClass::kSmall);
}

RC_GTEST_PROP(FreeList, AgreesWithAQuadraticSearchOverLargeBlocks, ()) {
  compare_a_program(SizeClass::kLarge);
}

TEST(FreeList, OfEqualBlocksTheLowestIsBest) {
  FreeList list(SizeClass::kSmall);
  Block high;
  Block low;
  high.address = reinterpret_cast<std::byte*>(8192);
  low.address = reinterpret_cast<std::byte*>(4096);
  high.size = low.size = Bytes{1024};
  list.insert(&high);
  list.insert(&low);
  EXPECT_EQ(list.best_fit(Bytes{512}), &low);
  list.erase(&low);
  EXPECT_EQ(list.best_fit(Bytes{512}), &high);
  list.erase(&high);
  EXPECT_EQ(list.best_fit(Bytes{512}), nullptr);
}

}  // namespace
}  // namespace gpushare::alloc
