// The rare questions to the list of free blocks. Taking and adding a block stand in the header,
// since each allocation does it.
#include "csrc/alloc/blocks/free_list.h"

#include <algorithm>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::alloc {

// In the order of bins, so that smaller blocks come first; within a bin by size, then address. The
// caller tries them in this order until it finds one that it can use.
std::vector<Block*> FreeList::at_least(Bytes size) const {
  std::vector<Block*> blocks;
  for (std::size_t bin = next_used_bin(bin_for(size)); bin < kNumBins;
       bin = next_used_bin(bin + 1)) {
    bins_[bin].append_to(blocks);
  }
  // Only the first bin can hold blocks that are too small, and they stand first in it.
  const auto large_enough = std::find_if(blocks.begin(), blocks.end(),
                                         [&](const Block* block) { return block->size >= size; });
  blocks.erase(blocks.begin(), large_enough);
  return blocks;
}

// There are three levels: a bit of the summary says that a word is not 0, a bit of a word says that
// a bin is not empty, and a bin is a tree. A search relies on all three.
void FreeList::check_invariants() const {
  std::size_t total = 0;
  for (std::size_t word = 0; word < kNumWords; ++word) {
    const bool is_in_summary = (summary_ >> word & 1) != 0;
    GS_CHECK(is_in_summary == (words_[word] != 0), "word {}", word);
  }
  // Almost all bins are empty, and tests come here after each change. So an empty bin costs one
  // comparison.
  const std::uint64_t* const words = words_.data();
  const BlockTree* const bins = bins_.data();
  for (std::size_t bin = 0; bin < kNumBins; ++bin) {
    const bool is_marked = (words[bin / 64] >> (bin % 64) & 1) != 0;
    GS_CHECK(is_marked == !bins[bin].is_empty(), "bin {}", bin);
    if (is_marked) total += check_bin(bin);
  }
  GS_CHECK(total == size_, "counted {} kept {}", total, size_);
}

std::size_t FreeList::check_bin(std::size_t bin) const {
  std::vector<Block*> blocks;
  bins_[bin].append_to(blocks);
  for (const Block* block : blocks) {
    GS_CHECK(bin_for(block->size) == bin, "size {} in bin {}", block->size.value(), bin);
    GS_CHECK(!block->is_live);
  }
  return bins_[bin].check_invariants();
}

}  // namespace gpushare::alloc
