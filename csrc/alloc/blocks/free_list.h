// The free blocks of one kind, found by best fit: smallest size first, then lowest address.
//
// Bins of sizes with a bitmap over them, and a small tree in each bin. So a search looks at one or
// two bins, and a bin with one block, the common case, costs no tree walk. It neither splits nor
// joins blocks: that is SizePool's work.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "csrc/alloc/blocks/block.h"
#include "csrc/alloc/blocks/block_tree.h"
#include "csrc/alloc/blocks/size_class.h"

namespace gpushare::alloc {

class FreeList {
 public:
  explicit FreeList(SizeClass size_class) : shift_(unit_shift(size_class)) {}

  // pre: a multiple of the size class's unit, in no list.
  void insert(Block* block) {
    const std::size_t bin = bin_for(block->size);
    bins_[bin].insert(block);
    words_[bin / 64] |= std::uint64_t{1} << (bin % 64);
    summary_ |= std::uint64_t{1} << (bin / 64);
    ++size_;
  }
  // pre: in this list.
  void erase(Block* block) {
    const std::size_t bin = bin_for(block->size);
    bins_[bin].erase(block);
    --size_;
    if (!bins_[bin].is_empty()) return;
    words_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
    if (words_[bin / 64] == 0) summary_ &= ~(std::uint64_t{1} << (bin / 64));
  }
  // The best block of at least `size`; null if there is none. It stays in the list.
  [[nodiscard]] Block* best_fit(Bytes size) const {
    const std::size_t bin = bin_for(size);
    if (Block* const block = bins_[bin].first_at_least(size)) return block;
    const std::size_t larger = next_used_bin(bin + 1);
    return larger == kNumBins ? nullptr : bins_[larger].first_at_least(size);
  }
  // All blocks of at least `size`, best fit first.
  [[nodiscard]] std::vector<Block*> at_least(Bytes size) const;

  [[nodiscard]] std::size_t size() const { return size_; }
  void check_invariants() const;

 private:
  static constexpr std::size_t kNumWords = kNumBins / 64;
  static_assert(kNumWords <= 64, "one summary word");

  // Checks the blocks of one bin; returns how many there are.
  [[nodiscard]] std::size_t check_bin(std::size_t bin) const;
  [[nodiscard]] std::size_t bin_for(Bytes size) const { return bin_of(size.to_size() >> shift_); }
  // The first bin from `bin` on that holds a block, or kNumBins.
  [[nodiscard]] std::size_t next_used_bin(std::size_t bin) const {
    if (bin >= kNumBins) return kNumBins;
    const std::uint64_t rest = words_[bin / 64] >> (bin % 64);
    if (rest != 0) return bin + static_cast<std::size_t>(std::countr_zero(rest));
    const std::size_t word = bin / 64 + 1;
    const std::uint64_t words = word < kNumWords ? summary_ >> word : 0;
    if (words == 0) return kNumBins;
    const std::size_t found = word + static_cast<std::size_t>(std::countr_zero(words));
    return found * 64 + static_cast<std::size_t>(std::countr_zero(words_[found]));
  }

  int shift_;
  std::size_t size_ = 0;
  // Invariant: bit i of the words is set exactly if bin i is not empty; the summary likewise for
  // the words.
  std::uint64_t summary_ = 0;
  std::array<std::uint64_t, kNumWords> words_{};
  std::array<BlockTree, kNumBins> bins_{};
};

}  // namespace gpushare::alloc
