// Overflow: what was refused room lives in the host tier, where it is slow to use, until there is
// room for it. A request is placed whole or not at all. Its low chunks get what room there is, and
// only the rest gets slots that are mapped at its addresses. Such chunks are no backed bytes.
//
// What may go wrong: the host tier is full, or its memory cannot be mapped there. Then the slots
// taken for this request become unneeded copies, which are given back later, and the request fails
// with both reasons in its text. Everything happens under the allocator's lock; no byte is copied.
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/alloc/allocator/allocator_core.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {

// Only for a refusal for want of room: a wait that was cancelled is no reason to go on more slowly.
Result<void*> AllocatorCore::allocate_in_overflow(Bytes size, const Status& refused) {
  if (overflow_slab == nullptr || refused.code() != StatusCode::kOutOfMemory) {
    return out_of_memory(size, refused);
  }
  const Attempt result = attempt(size, Lacking::kOverflows);
  if (result.address != nullptr) return result.address;
  return out_of_memory(
      size, {refused.code(), fmt::format("{}. Nor does it fit in overflow: {}", refused.message(),
                                         result.failure.message())});
}

// Counts from the high end, as many chunks as lack room.
std::size_t AllocatorCore::split_for_overflow(const Segment& segment,
                                              ChunkRange range,
                                              Bytes lacking) {
  std::size_t split = range.last;
  for (Bytes found; found < lacking && split > range.first;) {
    --split;
    if (segment.chunk(split).state == ChunkState::kUnbacked) found += chunks(1);
  }
  return split;
}

// Places all chunks of the range that have no memory, or none of them.
Status AllocatorCore::overflow(SizePool& pool, Block* block, ChunkRange range) {
  if (range.size() == 0) return {};
  for (const vm::SlotId slot : take_unneeded_slots())
    overflow_slab->give_back(slot);
  // An old copy may be mapped at these very addresses. Hiding it later would hide what is placed
  // here now, so nothing is placed while one is left.
  if (!unneeded_copies.empty()) return {StatusCode::kOutOfMemory, "old copies are still mapped"};
  Segment& segment = *block->segment;
  std::vector<std::size_t> placed;
  Status failure;
  for (std::size_t i = range.first; i < range.last && failure.ok(); ++i) {
    if (segment.chunk(i).state != ChunkState::kUnbacked) continue;
    failure = place_in_overflow(segment, i);
    if (failure.ok()) placed.push_back(i);
  }
  if (!failure.ok()) {
    for (const std::size_t i : placed) {
      unneeded_copies.push_back({segment.chunk(i).slot, segment.address_of(i)});
      books.move(segment, segment.chunk(i), ChunkState::kUnbacked);
    }
  }
  pool.recount(block);
  return failure;
}

// The slot's bytes are whatever was in it before: a new block has no contents to keep.
Status AllocatorCore::place_in_overflow(Segment& segment, std::size_t index) {
  const Result<vm::SlotId> slot = overflow_slab->take();
  if (!slot) return slot.error();
  const std::optional<vm::HostPlace> place = overflow_slab->place_of(*slot);
  Status shown = place.has_value() ? vmm.show(segment.address_of(index), chunks(1), *place)
                                   : Status(StatusCode::kFailedPrecondition,
                                            "memory of this host tier cannot be mapped");
  if (!shown.ok()) {
    overflow_slab->give_back(*slot);
    return shown;
  }
  segment.chunk(index).slot = *slot;
  books.move(segment, segment.chunk(index), ChunkState::kOverflow);
  return {};
}

// The slots whose copies nobody needs any more. The caller gives them back to their slab, which has
// a lock of its own.
std::vector<vm::SlotId> AllocatorCore::take_unneeded_slots() {
  std::vector<vm::SlotId> slots;
  std::vector<UnneededCopy> stay;
  for (const UnneededCopy& copy : unneeded_copies) {
    // Addresses that still show the copy would show whatever the slot is used for next, so they are
    // hidden first. A copy that cannot be hidden keeps its slot, and is tried again later.
    const Status hidden =
        copy.address == nullptr ? Status() : vmm.hide(copy.address, vm::kChunkBytes);
    if (hidden.ok()) {
      slots.push_back(copy.slot);
    } else {
      log::warn("an unneeded copy stays in the host tier: {}", hidden.to_string());
      stay.push_back(copy);
    }
  }
  unneeded_copies = std::move(stay);
  return slots;
}

}  // namespace gpushare::alloc
