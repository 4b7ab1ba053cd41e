// Blocks ordered by best fit: a treap over the nodes' own links, so that it allocates nothing.
//
// A node's priority is a hash of its address; that keeps the tree's depth logarithmic on average
// without any rebalancing state. Insert, erase and search are O(log n).
#pragma once

#include <vector>

#include "csrc/alloc/blocks/block.h"

namespace gpushare::alloc {

class BlockTree {
 public:
  [[nodiscard]] bool is_empty() const { return root_ == nullptr; }
  void insert(Block* block) {
    if (root_ == nullptr) [[likely]] {
      block->left = block->right = nullptr;
      root_ = block;
      set_priority(block);
      return;
    }
    insert_below(block);
  }
  // pre: the block is in this tree.
  void erase(Block* block) {
    if (root_ == block && block->left == nullptr && block->right == nullptr) [[likely]] {
      root_ = nullptr;
      return;
    }
    erase_below(block);
  }
  // The lowest of the smallest blocks with at least `size`; null if none is large enough.
  [[nodiscard]] Block* first_at_least(Bytes size) const {
    Block* best = nullptr;
    for (Block* at = root_; at != nullptr;) {
      if (at->size >= size) {
        best = at;
        at = at->left;
      } else {
        at = at->right;
      }
    }
    return best;
  }
  // Appends all blocks in best-fit order.
  void append_to(std::vector<Block*>& blocks) const { append(root_, blocks); }
  // Order of keys and of priorities. Returns the number of blocks.
  [[nodiscard]] std::size_t check_invariants() const;

 private:
  static void set_priority(Block* block);
  static void append(Block* at, std::vector<Block*>& blocks);
  void insert_below(Block* block);
  void erase_below(Block* block);

  Block* root_ = nullptr;
};

}  // namespace gpushare::alloc
