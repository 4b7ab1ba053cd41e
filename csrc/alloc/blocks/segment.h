// A segment: one reserved address range of an arena, tiled by blocks, backed chunk by chunk.
//
// It keeps the chunks' records and the head of the block list. It calls no Vmm: the function that
// backs or unbacks a chunk tells Books, which moves the chunk's state.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/alloc/blocks/block.h"
#include "csrc/alloc/blocks/chunk.h"
#include "csrc/alloc/blocks/size_class.h"
#include "csrc/alloc/blocks/stats.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

class SizePool;

class Segment {
 public:
  // pre: whole chunks.
  Segment(std::byte* base, Bytes size, SizePool* pool) : base_(base), pool_(pool) {
    chunks_.resize(num_chunks(size));
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] std::byte* base() const { return base_; }
  [[nodiscard]] std::byte* end() const { return base_ + chunks_.size() * kChunkSize; }
  [[nodiscard]] Bytes size() const { return chunks(chunks_.size()); }
  [[nodiscard]] SizePool* pool() const { return pool_; }

  [[nodiscard]] std::size_t num_chunks_in_all() const { return chunks_.size(); }
  [[nodiscard]] Chunk& chunk(std::size_t index) { return chunks_[index]; }
  [[nodiscard]] const Chunk& chunk(std::size_t index) const { return chunks_[index]; }
  [[nodiscard]] std::byte* address_of(std::size_t index) const {
    return base_ + index * kChunkSize;
  }
  // Chunks that the bytes touch. pre: size > 0, inside the segment.
  [[nodiscard]] ChunkRange touched_by(const std::byte* address, Bytes size) const {
    const auto offset = static_cast<std::size_t>(address - base_);
    return {offset / kChunkSize, (offset + size.to_size() - 1) / kChunkSize + 1};
  }
  // Chunks of which the bytes hold every byte.
  [[nodiscard]] ChunkRange within(const std::byte* address, Bytes size) const {
    const auto offset = static_cast<std::size_t>(address - base_);
    return {(offset + kChunkSize - 1) / kChunkSize, (offset + size.to_size()) / kChunkSize};
  }
  // Chunks under the block that are not usable as they are.
  [[nodiscard]] std::uint32_t count_absent(const Block& block) const;

  // Blocks, booked chunks, live counts, states.
  void check_invariants() const;

  Block* first_block = nullptr;
  std::size_t num_booked = 0;   // by Books
  std::size_t num_spilled = 0;  // by Books

 private:
  void check_block(const Block& block) const;
  struct Counts {
    std::uint32_t live = 0;
    std::uint32_t late = 0;
  };
  void check_chunks(const std::vector<Counts>& counts) const;

  std::byte* const base_;
  SizePool* const pool_;
  std::vector<Chunk> chunks_;
};

}  // namespace gpushare::alloc
