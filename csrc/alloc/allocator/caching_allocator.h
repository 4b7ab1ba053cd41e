// The caching allocator for CPU tensors: blocks over segments over chunks of a Vmm.
//
// Which problem it solves: PyTorch frees CPU tensors to the C library and faults their pages in
// anew in each iteration. Here freed blocks are kept, so a training step faults less, and all
// memory of a job lies in one reserved range whose chunks can be taken away and brought back
// without a tensor's address changing.
//
// Two arenas: `private` for what is made while the lease is open, and `outside` for what is made
// while it is closed. The route chooses between them; close and open flip it.
// While the route is kOutside no block of the private arena is handed out, whichever thread asks.
// While the job is parked the memory of both may move; what was made outside leaves last.
//
// Room: backed bytes never exceed room(). An allocation that would exceed it first drops free
// chunks, then asks the RoomSource, without holding the lock, and fails with kOutOfMemory if that
// refuses.
//
// threads: any thread may allocate and free. What a thread freed serves it again without the one
// lock (thread_cache.h). Spills and restores copy without that lock. Under it the kernel is called
// to back, drop and map chunks, and a lane's chunks are cleared or copied at a close: other threads
// must not take blocks over these chunks meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "csrc/alloc/allocator/memory_use.h"
#include "csrc/alloc/allocator/room_source.h"
#include "csrc/alloc/blocks/route.h"
#include "csrc/alloc/blocks/stats.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::alloc {

struct AllocatorOptions {
  Bytes address_space = gib(512);         // reserved once for all segments
  Bytes initial_room = Bytes{INT64_MAX};  // no limit
};

class CachingAllocator {
 public:
  // `vmm` must outlive the allocator.
  static Result<std::unique_ptr<CachingAllocator>> create(vm::Vmm& vmm,
                                                          const AllocatorOptions& options);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // 64-byte aligned memory, not zeroed. pre: size > 0.
  // errors: kOutOfMemory, with sizes.
  // With kOnlyFree a refusal is no out of memory yet: the caller tries something else.
  Result<void*> allocate(Bytes size, Patience patience = Patience::kWaits);
  // false: the address is not ours (nothing was done). pre: else it came from allocate and is live.
  bool free(void* address);
  [[nodiscard]] bool owns(const void* address) const;
  // Base and size of the one reserved range that holds all segments.
  [[nodiscard]] std::pair<std::byte*, Bytes> reserved_range() const;

  // Null: nobody is asked, and an allocation beyond the room fails.
  void set_room_source(RoomSource* source);
  // The room now; raises only, except through Residency::release and set_room.
  void raise_room(Bytes room);
  // At attach and detach, when the books start anew. pre: none; a room below backed blocks growth
  // only.
  void set_room(Bytes room);
  // The lease opens before all its room is there: `coming` bytes follow by raise_room. Until then
  // late memory waits for them, and allocations have what is there.
  void expect_room(Bytes coming);
  [[nodiscard]] Bytes coming_room() const;
  // No room comes: late memory is used where it is, and allocations have what room there is, until
  // the next expect_room.
  void forgo_late();
  [[nodiscard]] Bytes room() const;
  [[nodiscard]] Bytes backed() const;
  // Bytes that had no room and are used in the host tier.
  [[nodiscard]] Bytes overflow() const;
  // Whether memory may come and go while it is used (vm::Vmm::traps_writers).
  [[nodiscard]] bool can_move_in_use() const;
  // The device takes memory back in whole pieces of this size at most, and so it is released.
  [[nodiscard]] Bytes most_piece() const;

  void set_route(Route route);
  [[nodiscard]] Route route() const;

  // Notes what another allocator has put into live blocks, until the route is kPrivate again. pre:
  // the route is kOutside, and nothing new comes into those of its blocks that may move.
  void note_use(const MemoryUse& use);
  // Backed bytes that may not move, as noted.
  [[nodiscard]] Bytes staying() const;

  // Gives free chunks back to the device (room stays). Returns the bytes given back.
  Bytes empty_cache();
  // Exact, but for peaks where several threads allocate: each thread but one may add or hide what
  // its cache can hold (ThreadCache::kMostSmall and kMostLarge). Empties the caches.
  [[nodiscard]] MemoryStats stats() const;
  // stats().live_private_bytes alone. Exact, and the caches keep what they have: cheap enough for
  // each iteration.
  [[nodiscard]] Bytes live_private() const;
  void reset_peak_stats();
  void reset_accumulated_stats();
  [[nodiscard]] std::vector<SegmentInfo> snapshot() const;
  // Highest backed bytes of the private arena since the last call, and starts anew: an iteration's
  // need.
  Bytes take_peak_backed();

  // Live blocks at these addresses are used late in an iteration, as optimizer state is: of spilled
  // memory they come back last, and an iteration can begin without them (Residency::restore_early).
  // So until they are freed. Addresses where no block begins are passed over.
  void mark_late(std::span<const std::uintptr_t> addresses);

  // Around fork(): the child must never allocate here; its frees of our blocks do nothing, and what
  // was spilled is no memory to it. pre: no memory is on the move.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

  // Everything; for tests and GS_EXPENSIVE_CHECKS.
  void check_invariants() const;

 private:
  friend class LaneChunks;
  friend class Residency;
  class Impl;
  explicit CachingAllocator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::alloc
