// Memory inside live blocks that holds nothing (memory_use.h): it is given up without a copy, and
// backed again, with whatever contents, before the blocks may be used.
#pragma once

#include "csrc/alloc/allocator/allocator_core.h"
#include "csrc/alloc/allocator/memory_use.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

// Marks the chunks of the private arena, in place of what was noted before.
void note_use(AllocatorCore& core, const MemoryUse& use) GS_REQUIRES(core.mu);
void forget_use(AllocatorCore& core) GS_REQUIRES(core.mu);

// Gives up the backing of unused chunks, and lowers the room by it, until `target` bytes are given
// up or none is left. They are kSpilled then, without a slot. pre: the route is kOutside.
DropOutcome give_up_unused(AllocatorCore& core, Bytes target) GS_REQUIRES(core.mu);

}  // namespace gpushare::alloc
