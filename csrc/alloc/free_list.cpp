#include "csrc/alloc/free_list.h"

#include <algorithm>
#include <vector>

#include "csrc/base/check.h"

namespace gpushare::alloc {

std::vector<Block*> FreeList::at_least(Bytes size) const {
  std::vector<Block*> blocks;
  for (std::size_t bin = next_used_bin(bin_for(size)); bin < kNumBins;
       bin = next_used_bin(bin + 1)) {
    bins_[bin].append_to(blocks);
  }
  // Only the first bin can hold smaller ones, and they stand first.
  const auto large_enough = std::find_if(blocks.begin(), blocks.end(),
                                         [&](const Block* block) { return block->size >= size; });
  blocks.erase(blocks.begin(), large_enough);
  return blocks;
}

void FreeList::check_invariants() const {
  std::size_t total = 0;
  for (std::size_t bin = 0; bin < kNumBins; ++bin) {
    total += bins_[bin].check_invariants();
    const bool is_marked = (words_[bin / 64] >> (bin % 64) & 1) != 0;
    GS_CHECK(is_marked == !bins_[bin].is_empty(), "bin {}", bin);
    const bool is_in_summary = (summary_ >> (bin / 64) & 1) != 0;
    GS_CHECK(is_in_summary == (words_[bin / 64] != 0), "word {}", bin / 64);
    std::vector<Block*> blocks;
    bins_[bin].append_to(blocks);
    for (const Block* block : blocks) {
      GS_CHECK(bin_for(block->size) == bin, "size {} in bin {}", block->size.value(), bin);
      GS_CHECK(!block->is_live);
    }
  }
  GS_CHECK(total == size_, "counted {} kept {}", total, size_);
}

}  // namespace gpushare::alloc
