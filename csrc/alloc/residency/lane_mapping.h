// The system calls on lane chunks: one for each run of neighbouring chunks.
//
// Lane chunks are many, and a call of the device's memory costs about the same for one chunk as for
// a hundred. These functions find the runs, make the calls, and keep the books of each chunk whose
// call went well. They end at the first failure, with the chunks before it done: who calls them may
// try again with the rest. Which chunks are members of the lane is LaneChunks' to say
// (lane_chunks.h).
//
// All need the allocator's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "csrc/alloc/allocator/allocator_core.h"
#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

using ChunkRefs = std::vector<ChunkRef>;

// Whether a lane chunk has a slot.
inline bool is_mapped(const ChunkRef& ref) { return ref.chunk().state == ChunkState::kResident; }

inline bool is_below(const ChunkRef& a, const ChunkRef& b) { return a.address() < b.address(); }

// Whether to stop.
using Ends = std::function<bool()>;

// Maps slots[i] of `file` at refs[i]. Ascending slots and addresses make long runs. Memory that no
// job has used yet takes its time: `ends`, if given, is asked between portions of a few ms.
// errors: kOutOfMemory, kIo; kCancelled: it was to stop.
Status map_slots(AllocatorCore& core,
                 const ChunkRefs& refs,
                 const std::vector<std::uint32_t>& slots,
                 int file,
                 const Ends& ends) GS_REQUIRES(core.mu);

// Takes the slots from these chunks. pre: no block lies over them: other jobs use the slots from
// now on. errors: kIo.
Status unmap_slots(AllocatorCore& core, const ChunkRefs& mapped) GS_REQUIRES(core.mu);

// From now on access to these chunks is a fault. A failure is logged and not fatal: the memory is
// only less well protected against this job's own mistakes.
void forbid_slots(AllocatorCore& core, const ChunkRefs& mapped) GS_REQUIRES(core.mu);
// The opposite. errors: kIo.
Status allow_slots(AllocatorCore& core, const ChunkRefs& mapped) GS_REQUIRES(core.mu);

// Gives up the memory of private and donated chunks, which become lane chunks without a slot.
// `free` is in the order of addresses. Appends the chunks to `members`, and returns how much lower
// the room is. A failure is logged.
Bytes give_up_memory(AllocatorCore& core, const ChunkRefs& free, ChunkRefs& members)
    GS_REQUIRES(core.mu);

}  // namespace gpushare::alloc
