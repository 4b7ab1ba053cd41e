// Which changes of a chunk's state are legal, and what has to hold in a segment.
//
// chunk.h draws the usual changes. is_legal() also allows those that end a move early. A spill or
// restore that fails leads back to where it came from. A chunk in which nothing is live any more is
// kUnbacked when its spill ends, or when its restore has failed.
#include "csrc/alloc/blocks/segment.h"

#include <vector>

#include "csrc/alloc/blocks/size_pool.h"
#include "csrc/base/check.h"

namespace gpushare::alloc {

const char* name_of(ChunkState state) {
  switch (state) {
    case ChunkState::kUnbacked: return "kUnbacked";
    case ChunkState::kResident: return "kResident";
    case ChunkState::kSpilling: return "kSpilling";
    case ChunkState::kSpilled: return "kSpilled";
    case ChunkState::kRestoring: return "kRestoring";
    case ChunkState::kOverflow: return "kOverflow";
  }
  return "?";
}

// Books::move() checks each change with this.
bool is_legal(ChunkState from, ChunkState to) {
  using enum ChunkState;
  switch (from) {
    case kUnbacked: return to == kResident || to == kOverflow;
    case kResident: return to == kUnbacked || to == kSpilling;
    case kSpilling: return to == kSpilled || to == kResident || to == kUnbacked;
    case kSpilled: return to == kRestoring || to == kUnbacked;
    case kRestoring: return to == kResident || to == kSpilled || to == kOverflow || to == kUnbacked;
    case kOverflow: return to == kRestoring || to == kUnbacked;
  }
  return false;
}

// A chunk at a border of the block counts for its neighbour as well.
std::uint32_t Segment::count_absent(const Block& block) const {
  const ChunkRange range = touched_by(block.address, block.size);
  std::uint32_t count = 0;
  for (std::size_t i = range.first; i < range.last; ++i) {
    if (!chunks_[i].is_usable()) ++count;
  }
  return count;
}

// What must hold for one block and its right neighbour: blocks tile the segment without a gap, and
// two free ones never touch. A free block knows how many of its chunks cannot be used.
void Segment::check_block(const Block& block) const {
  GS_CHECK(block.segment == this);
  const Bytes unit = unit_of(pool_->size_class());
  GS_CHECK(block.size > Bytes{} && block.size.value() % unit.value() == 0, "size {}",
           block.size.value());
  GS_CHECK(block.end() <= end());
  if (block.next != nullptr) {
    GS_CHECK(block.next->prev == &block && block.next->address == block.end());
    GS_CHECK(block.is_live || block.next->is_live, "free neighbours were not joined");
  } else {
    GS_CHECK(block.end() == end(), "blocks do not tile the segment");
  }
  if (block.is_live) {
    GS_CHECK(block.requested > Bytes{} && block.requested <= block.size);
    return;
  }
  GS_CHECK(block.requested == Bytes{} && !block.is_late);
  GS_CHECK(block.num_absent == count_absent(block), "kept {} counted {}", block.num_absent,
           count_absent(block));
}

// `counts`: live blocks over each chunk, as the list of blocks says.
void Segment::check_chunks(const std::vector<Counts>& counts) const {
  std::size_t booked = 0;
  std::size_t spilled = 0;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const Chunk& c = chunks_[i];
    GS_CHECK(c.num_live == counts[i].live, "chunk {} {}: kept {} counted {}", i, name_of(c.state),
             c.num_live, counts[i].live);
    GS_CHECK(c.num_late == counts[i].late, "chunk {} {}: kept {} late counted {}", i,
             name_of(c.state), c.num_late, counts[i].late);
    GS_CHECK(c.state != ChunkState::kUnbacked || c.num_live == 0, "chunk {}", i);
    GS_CHECK(!c.is_in_host_tier() || c.num_live > 0, "chunk {} {}", i, name_of(c.state));
    GS_CHECK(c.backing == Backing::kPrivate || !c.is_away(), "chunk {} {}", i, name_of(c.state));
    booked += c.is_booked() ? 1U : 0U;
    spilled += c.is_spilled() ? 1U : 0U;
  }
  GS_CHECK(booked == num_booked, "counted {} kept {}", booked, num_booked);
  GS_CHECK(spilled == num_spilled, "counted {} kept {}", spilled, num_spilled);
}

// Counts the live blocks over each chunk anew and compares them with what the chunks keep. It costs
// time in proportion to the segment, so only tests and debug builds do it.
void Segment::check_invariants() const {
  GS_CHECK(first_block != nullptr && first_block->address == base_);
  GS_CHECK(first_block->prev == nullptr);
  std::vector<Counts> counts(chunks_.size());
  for (const Block* block = first_block; block != nullptr; block = block->next) {
    check_block(*block);
    if (!block->is_live) continue;
    const ChunkRange range = touched_by(block->address, block->size);
    for (std::size_t i = range.first; i < range.last; ++i) {
      ++counts[i].live;
      counts[i].late += block->is_late ? 1U : 0U;
    }
  }
  check_chunks(counts);
}

}  // namespace gpushare::alloc
