// A treap: from left to right the blocks are in best-fit order, and no block lies above one of
// higher priority. insert() walks down to where the priority allows the block, and splits the
// subtree there into what comes before and after it. erase() joins the two subtrees of the block.
// Neither recurses nor allocates. The tree stays shallow only as long as priorities are spread,
// which set_priority() sees to.
#include "csrc/alloc/blocks/block_tree.h"

#include <cstdint>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::alloc {

// Blocks begin at multiples of 512 B, so the low nine bits say nothing. The factor is 2^64 over the
// golden ratio: it spreads neighbouring addresses, best in the high bits.
void BlockTree::set_priority(Block* block) {
  const std::uint64_t number = reinterpret_cast<std::uintptr_t>(block->address) >> 9;
  block->priority = static_cast<std::uint32_t>((number * 0x9E3779B97F4A7C15U) >> 32);
}

void BlockTree::insert_below(Block* block) {
  set_priority(block);
  Block** link = &root_;
  while (*link != nullptr && (*link)->priority >= block->priority) {
    link = is_better_fit(block, *link) ? &(*link)->left : &(*link)->right;
  }
  // Splits the subtree that was here into the blocks before the new one and those after it.
  Block* rest = *link;
  *link = block;
  Block** before = &block->left;
  Block** after = &block->right;
  while (rest != nullptr) {
    if (is_better_fit(rest, block)) {
      *before = rest;
      before = &rest->right;
      rest = rest->right;
    } else {
      *after = rest;
      after = &rest->left;
      rest = rest->left;
    }
  }
  *before = *after = nullptr;
}

void BlockTree::erase_below(Block* block) {
  Block** link = &root_;
  while (*link != block) {
    GS_DCHECK(*link != nullptr, "block of {} B is not in the tree", block->size.value());
    link = is_better_fit(block, *link) ? &(*link)->left : &(*link)->right;
  }
  // Joins the two subtrees, the higher priority on top.
  Block* low = block->left;
  Block* high = block->right;
  while (low != nullptr && high != nullptr) {
    if (low->priority >= high->priority) {
      *link = low;
      link = &low->right;
      low = low->right;
    } else {
      *link = high;
      link = &high->left;
      high = high->left;
    }
  }
  *link = low != nullptr ? low : high;
}

void BlockTree::append(Block* at, std::vector<Block*>& blocks) {
  if (at == nullptr) return;
  append(at->left, blocks);
  blocks.push_back(at);
  append(at->right, blocks);
}

std::size_t BlockTree::check_invariants() const {
  std::vector<Block*> blocks;
  append_to(blocks);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block* const block = blocks[i];
    GS_CHECK(i == 0 || is_better_fit(blocks[i - 1], block), "block {} of {}", i, blocks.size());
    GS_CHECK(block->left == nullptr || block->left->priority <= block->priority);
    GS_CHECK(block->right == nullptr || block->right->priority <= block->priority);
  }
  return blocks.size();
}

}  // namespace gpushare::alloc
