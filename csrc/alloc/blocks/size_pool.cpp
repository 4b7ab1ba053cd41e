// Which free block a request gets, and how free blocks split and join.
//
// find() looks in this order:
// 1. Best fit among blocks whose chunks are all usable. This is the usual case, and costs one
//    search.
// 2. Best fit among the others, if the chunks under the request itself are usable after all.
// 3. The block under which the fewest chunks have to be backed; among equals, best fit. This looks
//    at all of them, since backing costs far more.
//
// A block over chunks that are spilled or moving is passed by: no new block may lie there until
// they are back. carve() takes the low end of a block, so memory that was never used stays high,
// and in one piece. put_back() joins a block with its free neighbours at once, so no two free
// blocks ever touch. All of it happens under the allocator's lock.
#include "csrc/alloc/blocks/size_pool.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "csrc/base/check.h"

namespace gpushare::alloc {
namespace {

// Chunks to back under the first `size` bytes; none if a chunk there is spilled or moving.
std::optional<std::size_t> num_missing_under(const Block& block, Bytes size) {
  const Segment& segment = *block.segment;
  const ChunkRange range = segment.touched_by(block.address, size);
  std::size_t missing = 0;
  for (std::size_t i = range.first; i < range.last; ++i) {
    const ChunkState state = segment.chunk(i).state;
    if (segment.chunk(i).is_usable()) continue;
    if (state != ChunkState::kUnbacked) return std::nullopt;
    ++missing;
  }
  return missing;
}

}  // namespace

SizePool::Candidate SizePool::find(Bytes size) const {
  if (Block* const block = resident_.best_fit(size)) return {block, 0};
  Block* const first = absent_.best_fit(size);
  if (first == nullptr) return {};
  if (num_missing_under(*first, size) == std::size_t{0}) return {first, 0};
  // Chunks have to be backed, which costs far more than this search.
  Candidate best;
  for (Block* const block : absent_.at_least(size)) {
    const auto missing = num_missing_under(*block, size);
    if (!missing) continue;
    if (best.block == nullptr || *missing < best.num_missing) best = {block, *missing};
  }
  return best;
}

// Turns the low end of a free block into a live one. What is left becomes a free block of its own.
Block* SizePool::carve(Block* block, Bytes size, Bytes requested) {
  list_of(block).erase(block);
  // `split` is the change in the number of free blocks beside others: this block is one less, and
  // the rest of it may be one more.
  int split = block->has_neighbour() ? -1 : 0;
  if (block->size > size) {
    Block* const rest = store_.take();
    rest->address = block->address + size.to_size();
    rest->size = block->size - size;
    rest->segment = block->segment;
    rest->arena = arena_;
    rest->prev = block;
    rest->next = block->next;
    if (rest->next != nullptr) rest->next->prev = rest;
    rest->num_absent = block->num_absent;  // none of them is under the block: see the precondition
    block->next = rest;
    block->size = size;
    list_of(rest).insert(rest);
    ++split;
  }
  block->num_absent = 0;
  block->is_live = true;
  block->requested = requested;
  Segment& segment = *block->segment;
  const ChunkRange range = segment.touched_by(block->address, size);
  for (std::size_t i = range.first; i < range.last; ++i) {
    Chunk& chunk = segment.chunk(i);
    GS_DCHECK(chunk.is_usable());
    ++chunk.num_live;
    chunk.was_used = true;
  }
  books_.on_split(size_class_, split);
  return block;
}

// A chunk in the host tier over which nothing lives any more needs no copy: it is kUnbacked at
// once, and its slot goes to `unneeded`. A chunk on the move only loses the count; whoever moves it
// sees that.
std::uint32_t SizePool::let_go(Block* block, std::vector<UnneededCopy>& unneeded) {
  Segment& segment = *block->segment;
  const ChunkRange range = segment.touched_by(block->address, block->size);
  const std::uint32_t late = block->is_late ? 1 : 0;
  std::uint32_t absent = 0;
  for (std::size_t i = range.first; i < range.last; ++i) {
    Chunk& chunk = segment.chunk(i);
    --chunk.num_live;
    chunk.num_late -= late;
    if (chunk.state == ChunkState::kResident) [[likely]]
      continue;
    if (chunk.is_in_host_tier() && chunk.num_live == 0) {
      if (chunk.has_copy()) unneeded.push_back({chunk.slot, segment.address_of(i)});
      books_.move(segment, chunk, ChunkState::kUnbacked);
    }
    if (!chunk.is_usable()) ++absent;
  }
  return absent;
}

// Two neighbours become the lower one. pre: neither is in a list.
Block* SizePool::join(Block* low, Block* high) {
  low->size += high->size;
  low->num_absent += high->num_absent;
  low->next = high->next;
  if (low->next != nullptr) low->next->prev = low;
  store_.give_back(high);
  return low;
}

// First the chunks lose their count of live blocks, then the block grows by its free neighbours.
void SizePool::put_back(Block* block, std::vector<UnneededCopy>& unneeded) {
  const std::uint32_t absent = let_go(block, unneeded);
  block->is_live = block->is_late = false;
  block->requested = Bytes{};
  int split = 0;
  if (Block* const next = block->next; next != nullptr && !next->is_live) {
    list_of(next).erase(next);
    join(block, next);
    --split;
  }
  if (Block* const prev = block->prev; prev != nullptr && !prev->is_live) {
    list_of(prev).erase(prev);
    block = join(prev, block);
    --split;
  }
  // join() has added up the counts. That sum is right where all chunks of the freed block are
  // resident, since its neighbours share no absent chunk with it then. Where one is absent it may
  // have been counted twice.
  if (absent > 0) block->num_absent = block->segment->count_absent(*block);
  list_of(block).insert(block);
  if (block->has_neighbour()) ++split;
  books_.on_split(size_class_, split);
}

// After chunks under a free block have come or gone: the block may belong into the other list now.
void SizePool::recount(Block* block) {
  list_of(block).erase(block);
  block->num_absent = block->segment->count_absent(*block);
  list_of(block).insert(block);
}

// After chunks of many blocks have come or gone at once.
void SizePool::recount_all() {
  for (const auto& segment : segments_) {
    for (Block* block = segment->first_block; block != nullptr; block = block->next) {
      if (!block->is_live) recount(block);
    }
  }
}

// Both lists are sorted by best fit; merged and turned round, the largest block comes first.
std::vector<Block*> SizePool::blocks_to_drop() const {
  std::vector<Block*> blocks = resident_.at_least(vm::kChunkBytes);
  const std::vector<Block*> others = absent_.at_least(vm::kChunkBytes);
  std::vector<Block*> merged;
  merged.reserve(blocks.size() + others.size());
  std::merge(blocks.begin(), blocks.end(), others.begin(), others.end(), std::back_inserter(merged),
             is_better_fit);
  std::reverse(merged.begin(), merged.end());
  return merged;
}

// A new segment is one free block without any backing.
void SizePool::add_segment(std::byte* base, Bytes size) {
  segments_.push_back(std::make_unique<Segment>(base, size, this));
  Segment& segment = *segments_.back();
  Block* const block = store_.take();
  block->address = base;
  block->size = size;
  block->segment = &segment;
  block->arena = arena_;
  block->num_absent = static_cast<std::uint32_t>(segment.num_chunks_in_all());
  segment.first_block = block;
  absent_.insert(block);
}

// Only the newest segment can go: address space is handed out from low to high.
bool SizePool::remove_newest_segment() {
  const Segment& segment = *segments_.back();
  Block* const only = segment.first_block;
  if (only->is_live || only->next != nullptr || segment.num_booked > 0) return false;
  // A chunk may be without a live block and yet be moving, or wait for a lane's slot: then somebody
  // still needs the record.
  for (std::size_t i = 0; i < segment.num_chunks_in_all(); ++i) {
    const Chunk& chunk = segment.chunk(i);
    if (chunk.state != ChunkState::kUnbacked || chunk.backing != Backing::kPrivate) return false;
  }
  list_of(only).erase(only);
  store_.give_back(only);
  segments_.pop_back();
  return true;
}

void SizePool::check_invariants() const {
  resident_.check_invariants();
  absent_.check_invariants();
  std::size_t num_free = 0;
  for (const auto& segment : segments_) {
    GS_CHECK(segment->pool() == this);
    segment->check_invariants();
    for (const Block* block = segment->first_block; block != nullptr; block = block->next) {
      num_free += block->is_live ? 0U : 1U;
    }
  }
  GS_CHECK(num_free == resident_.size() + absent_.size(), "{} free, {} and {} listed", num_free,
           resident_.size(), absent_.size());
  for (const Block* block : resident_.at_least(unit_of(size_class_))) {
    GS_CHECK(block->num_absent == 0);
  }
  for (const Block* block : absent_.at_least(unit_of(size_class_))) {
    GS_CHECK(block->num_absent > 0);
  }
}

}  // namespace gpushare::alloc
