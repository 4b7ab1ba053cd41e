// In what order chunks are next used: who leaves first, who comes back first.
//
// Which problem it solves: what is given up first should be what the next iteration needs last, and
// what comes back first what it needs first; what it needs late it need not wait for at all.
//
// Late blocks are optimizer state, as the one who knows has said (CachingAllocator::mark_late):
// read and written when gradients are there. Other blocks go by their addresses: a model's
// parameters are made in the order of its layers, and what is made later lies higher, gradients
// above all. Small blocks (biases, norms) are used all along, and are little: they leave after
// those. Last leaves what was made while the lease was closed, which may be in use even then.
// Being wrong costs time, never bytes.
#pragma once

#include <vector>

#include "csrc/alloc/allocator/allocator_core.h"

namespace gpushare::alloc {

// Chunks for which `wanted(chunk)`, what is used last first: late ones, then the others; in each
// the private arena before the outside one, the large pool before the small one, the highest
// address first.
template <typename Wanted>
std::vector<ChunkRef> last_used_first(AllocatorCore& core, Wanted wanted) GS_REQUIRES(core.mu) {
  std::vector<ChunkRef> late;
  std::vector<ChunkRef> others;
  for (const ChunkRef& ref : core.all_chunks(wanted))
    (ref.chunk().is_late() ? late : others).push_back(ref);
  late.insert(late.end(), others.begin(), others.end());
  return late;
}

}  // namespace gpushare::alloc
