// From the address of a live block to its node: an open-addressing table, half full at most.
//
// Which problem it solves: free() gets an address and nothing else, in the hot path. Erasing moves
// later entries of a cluster up, so there are no tombstones and no slow decay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "csrc/alloc/block.h"

namespace gpushare::alloc {

class BlockMap {
 public:
  BlockMap() : entries_(kInitialEntries) {}

  // pre: not in the map.
  void insert(Block* block) {
    if ((size_ + 1) * 2 > entries_.size()) grow();
    place({block->address, block});
    ++size_;
  }

  // The block at `address`, taken out; null if there is none.
  Block* extract(const void* address) {
    for (std::size_t at = home_of(address);; at = after(at)) {
      if (entries_[at].address == address) {
        Block* const block = entries_[at].block;
        close_gap(at);
        --size_;
        return block;
      }
      if (entries_[at].address == nullptr) return nullptr;
    }
  }

  [[nodiscard]] const Block* find(const void* address) const {
    for (std::size_t at = home_of(address);; at = after(at)) {
      if (entries_[at].address == address) return entries_[at].block;
      if (entries_[at].address == nullptr) return nullptr;
    }
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Entry {
    const void* address = nullptr;
    Block* block = nullptr;
  };
  static constexpr std::size_t kInitialEntries = 1024;  // a power of two, as every later size

  // Blocks are multiples of 512 B apart; the multiplication spreads what is left (Knuth 6.4).
  [[nodiscard]] std::size_t home_of(const void* address) const {
    const std::uint64_t number = reinterpret_cast<std::uintptr_t>(address) >> 9;
    return (number * 0x9E3779B97F4A7C15U >> 24) & (entries_.size() - 1);
  }
  [[nodiscard]] std::size_t after(std::size_t at) const { return (at + 1) & (entries_.size() - 1); }

  void place(Entry entry) {
    std::size_t at = home_of(entry.address);
    while (entries_[at].address != nullptr)
      at = after(at);
    entries_[at] = entry;
  }

  // Moves up each later entry of the cluster whose way from home leads through the gap.
  void close_gap(std::size_t gap) {
    const std::size_t mask = entries_.size() - 1;
    for (std::size_t at = after(gap); entries_[at].address != nullptr; at = after(at)) {
      const std::size_t home = home_of(entries_[at].address);
      if (((at - home) & mask) >= ((at - gap) & mask)) {
        entries_[gap] = entries_[at];
        gap = at;
      }
    }
    entries_[gap] = Entry{};
  }

  void grow() {
    const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(entries_.size() * 2));
    for (const Entry& entry : old) {
      if (entry.address != nullptr) place(entry);
    }
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace gpushare::alloc
