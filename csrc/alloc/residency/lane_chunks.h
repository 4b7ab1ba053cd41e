// Lane chunks: memory that is free at boundaries, backed by memory that the jobs of a lane share.
//
// Which problem it solves: activations are dead between iterations, so jobs that take turns need
// that memory only once. A chunk of the private arena that was without a live block at several
// closes in a row is promoted: its private memory is given up, and at the next open a slot of the
// lane's pool is mapped at the same address. All jobs of the lane map the same slots, each at
// addresses of its own, and use them only while their leases are open. So a switch inside a lane
// moves no byte and maps nothing.
//
// A lane chunk with a live block at close is donated: it stays where it is and becomes this job's
// own, in its room; its slot leaves the pool. It comes back by being promoted again, after twice as
// many closes each time, since a block that lived once at a boundary may do so again. So does a
// chunk that the pool had no slot for. One that no block lay over for many leases in a row leaves
// the lane: the pool is as large as its members' iterations are, not as they once were.
//
// What it does not do: it decides nothing about the pool (csrc/sched/table/lane_pool.h), and sends
// nothing; what the coordinator must hear is in the LaneChange that close() returns.
//
// threads: one at a time calls it (the runtime's lock); allocator calls of others go on meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "csrc/alloc/allocator/allocator_core.h"
#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/lane_mapping.h"
#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

struct LaneChange {
  Bytes given;                         // private memory given up: room is lower by it
  std::vector<std::uint32_t> donated;  // slots that left the pool: room is higher by them
  // Slots donated before that hold nothing any more; their memory is given back.
  std::vector<std::uint32_t> returned;
};

class LaneChunks {
 public:
  static constexpr int kFreeCloses = 3;
  static constexpr int kUnusedCloses = 16;
  static constexpr std::size_t kMostChunks = 8192;  // donated ones included

  struct CloseOptions {
    // Chunks that were free often enough become lane chunks, if the device's memory can be shared.
    bool may_promote = false;
    bool scrub = false;      // what lane chunks hold is zeroed
    bool is_strict = false;  // access to them is a fault until the next open
  };

  // `allocator` must outlive it.
  explicit LaneChunks(CachingAllocator& allocator) : allocator_(allocator) {}

  // The lease has been closed. New lane chunks are without memory until the next open.
  // pre: the route is kOutside.
  LaneChange close(const CloseOptions& options);
  // The lease is open: lane chunks are mapped from the first slots of the lane's pool. Where it has
  // fewer than chunks, the others become private chunks without memory. Slots that are mapped
  // already stay. Memory that no job has used yet takes its time: `ends`, if given, is asked
  // between portions of a few ms whether to stop. pre: close() before; the route is kOutside.
  // errors: kOutOfMemory, kIo; kCancelled: it was to stop, and access is as the last close left it.
  // Some are mapped; may be tried again.
  Status open(int file, const std::vector<std::uint32_t>& slots, const Ends& ends = {});
  // None is a lane chunk any more, and none is mapped. pre: as for open(). errors: kOutOfMemory,
  // kIo: mapped ones are left, which must not be used.
  Status leave();
  // The same at a close, as after a setback: they have to be free for longer before they come back,
  // and all others anew.
  Status stay_out();
  // Their coordinator is gone, or thinks that this process is. With an open lease they stay, as
  // donated ones: nobody else uses them. Else as leave().
  Status on_disconnect(bool is_open);
  // The lane's file has no owner any more: donated chunks leave it at the next close.
  void forget_slots();
  // Before a fork: memory that a child may read, and may not write to, becomes private.
  void make_live_private();

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] std::vector<std::uint32_t> donated_slots() const;  // ascending
  // Some donated chunks are of a file without an owner, until a close.
  [[nodiscard]] bool has_forgotten() const;

 private:
  void donate_live(AllocatorCore& core) GS_REQUIRES(core.mu);
  void forget_former_members();
  void retire_unused(AllocatorCore& core) GS_REQUIRES(core.mu);
  void forbid_access(AllocatorCore& core) GS_REQUIRES(core.mu);
  Status allow_access(AllocatorCore& core) GS_REQUIRES(core.mu);
  Bytes promote(AllocatorCore& core, const ChunkRefs& free) GS_REQUIRES(core.mu);

  CachingAllocator& allocator_;
  ChunkRefs members_;                   // all chunks that are kLane, by address
  std::vector<std::uint32_t> donated_;  // slots since the last close
  bool is_forbidden_ = false;           // access to some of them
};

}  // namespace gpushare::alloc
