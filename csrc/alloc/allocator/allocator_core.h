// The inside of CachingAllocator: everything its one lock covers.
//
// CachingAllocator is the face towards torch and forwards to it; Residency and its helpers, which
// move memory, work on it directly. Functions that take the lock say GS_EXCLUDES, those that want
// it held GS_REQUIRES. The lock is held while chunks are backed and dropped, since a candidate
// block must not be taken meanwhile, and while chunks change hands with a lane (lane_chunks.h). It
// is not held while spilled bytes are copied, nor while the coordinator is asked for room.
//
// A block that a thread frees goes to its cache, and its next allocations come from there, without
// that lock. A kept block counts as in use for the pools, not for the books. So the caches are
// emptied before chunks are backed or dropped, where the route changes, and where somebody reads
// figures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/blocks/arena.h"
#include "csrc/alloc/blocks/block.h"
#include "csrc/alloc/blocks/block_index.h"
#include "csrc/alloc/blocks/books.h"
#include "csrc/alloc/blocks/chunk.h"
#include "csrc/alloc/blocks/segment.h"
#include "csrc/alloc/caches/thread_cache.h"
#include "csrc/alloc/caches/thread_caches.h"
#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::alloc {

// A chunk of a segment.
struct ChunkRef {
  Segment* segment = nullptr;
  std::size_t index = 0;
  [[nodiscard]] Chunk& chunk() const { return segment->chunk(index); }
  [[nodiscard]] std::byte* address() const { return segment->address_of(index); }
};

// How many free chunks drop_free_chunks() is to give up, and what it did.
struct DropRequest {
  Bytes target;                           // stop when so much is dropped
  bool lowers_room = false;               // room falls with the backed bytes
  const Segment* kept_segment = nullptr;  // chunks to leave alone
  ChunkRange kept = {};
};
struct DropOutcome {
  Bytes dropped;
  Bytes lowered;   // room is lower by this
  Status failure;  // why it stopped early
};

class AllocatorCore final : private ThreadCaches::Home {
 public:
  AllocatorCore(vm::Vmm& device, vm::AddressRange range, const AllocatorOptions& options);

  Result<void*> allocate(Bytes size, Patience patience) GS_EXCLUDES(mu);
  bool free(void* address) GS_EXCLUDES(mu);
  [[nodiscard]] const vm::AddressRange& range() const { return range_; }

  // Gives up the backing of free chunks, in both arenas.
  DropOutcome drop_free_chunks(const DropRequest& request) GS_REQUIRES(mu);
  // Chunks of the arena for which `wanted(chunk)`, highest address first in each pool.
  template <typename Wanted>
  std::vector<ChunkRef> chunks_of(Route kind, Wanted wanted) GS_REQUIRES(mu);
  template <typename Wanted>
  std::vector<ChunkRef> private_chunks(Wanted wanted) GS_REQUIRES(mu) {
    return chunks_of(Route::kPrivate, wanted);
  }
  // The same for both arenas, the private one's first.
  template <typename Wanted>
  std::vector<ChunkRef> all_chunks(Wanted wanted) GS_REQUIRES(mu);
  // Chunks' states under free blocks have changed: counts anew.
  void recount_all() GS_REQUIRES(mu);
  // Whether a live block begins where the chunk does.
  [[nodiscard]] bool begins_block(const ChunkRef& at) const GS_REQUIRES(mu);
  // Asks the room source. errors: kOutOfMemory, also where there is nobody to ask.
  Status ask_for_room(const RoomRequest& request) GS_EXCLUDES(mu);

  // Blocks at these addresses are used late in an iteration (use_order.h); others are passed over.
  void mark_late(std::span<const std::uintptr_t> addresses) GS_REQUIRES(mu);
  // Room that is spoken for. While private memory is in use, that is the room of memory that has
  // still to come back, less the room that the coordinator has yet to send for it.
  [[nodiscard]] Bytes owed() const GS_REQUIRES(mu) {
    if (route_ != Route::kPrivate) return {};
    return std::max(books.to_restore() - books.coming(), Bytes{});
  }

  // The route, and with it what the caches hold: from now on nothing of the other arena.
  void set_route(Route to) GS_REQUIRES(mu);
  [[nodiscard]] Route route() const GS_REQUIRES(mu) { return route_; }
  // Puts back what the threads' caches keep, and tells the books. Free blocks join, so pointers to
  // them are void then.
  void empty_caches() GS_REQUIRES(mu);
  // Bytes of live blocks of the private arena. Exact, and the caches keep what they have.
  [[nodiscard]] Bytes live_private() GS_REQUIRES(mu);
  // As empty_caches(), and nothing changes before the snapshot is made.
  [[nodiscard]] std::vector<SegmentInfo> snapshot() GS_REQUIRES(mu);

  // fork() between the two: the child finds whole data, under no lock.
  void before_fork() GS_ACQUIRE(mu);
  void after_fork(bool is_child) GS_RELEASE(mu);

  void check_invariants() GS_REQUIRES(mu);
  // check_invariants() now and then: each time while there is little to walk.
  void check_sometimes() GS_REQUIRES(mu);

  vm::Vmm& vmm;
  mutable Mutex mu;
  Books books GS_GUARDED_BY(mu);
  RoomSource* room_source GS_GUARDED_BY(mu) = nullptr;
  bool is_forked_child GS_GUARDED_BY(mu) = false;
  bool has_noted_use GS_GUARDED_BY(mu) = false;  // by unused_memory.h
  // Residency gives them back, and overflow does when it needs slots of the host tier.
  std::vector<UnneededCopy> unneeded_copies GS_GUARDED_BY(mu);
  // Takes the copies that no address shows any more from that list.
  std::vector<vm::SlotId> take_unneeded_slots() GS_REQUIRES(mu);
  // Whether what is spilled from now on shows its copy (Residency::set_shows_copies).
  bool shows_copies GS_GUARDED_BY(mu) = true;
  // The host tier, in which memory without room is placed. Null: such an allocation is refused.
  vm::HostSlab* overflow_slab GS_GUARDED_BY(mu) = nullptr;

  [[nodiscard]] Arena& arena(Route kind) GS_REQUIRES(mu) {
    return arenas_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] const Arena& arena(Route kind) const GS_REQUIRES(mu) {
    return arenas_[static_cast<std::size_t>(kind)];
  }

 private:
  // One try under the lock.
  struct Attempt {
    void* address = nullptr;
    Bytes lacking;   // > 0: with so much more room it would have worked
    Status failure;  // else, why it did not
  };
  Result<void*> allocate_slowly(Bytes size, Patience patience) GS_EXCLUDES(mu);
  // How an attempt treats chunks that lack room: it says how much is lacking, or places them in the
  // host tier.
  enum class Lacking : std::uint8_t { kIsSaid, kOverflows };
  Attempt attempt(Bytes size, Lacking lacking) GS_REQUIRES(mu);
  Attempt back_and_carve(SizePool& pool, SizePool::Candidate candidate, Bytes size, Lacking lacking)
      GS_REQUIRES(mu);
  // overflow.cpp: after room was refused.
  Result<void*> allocate_in_overflow(Bytes size, const Status& refused) GS_REQUIRES(mu);
  // The chunk from which on those without backing are as many as lack room.
  static std::size_t split_for_overflow(const Segment& segment, ChunkRange range, Bytes lacking);
  // Places the chunks without backing, or none.
  Status overflow(SizePool& pool, Block* block, ChunkRange range) GS_REQUIRES(mu);
  Status place_in_overflow(Segment& segment, std::size_t index) GS_REQUIRES(mu);
  Bytes make_room(Bytes more, const Segment& segment, ChunkRange kept) GS_REQUIRES(mu);
  Status back_under(SizePool& pool, Block* block, ChunkRange range) GS_REQUIRES(mu);
  // Whether chunks that are backed now may not move before the next lease.
  [[nodiscard]] bool stays(const SizePool& pool) const GS_REQUIRES(mu);
  void note_shown_no_more(const std::byte* address, Bytes size) GS_REQUIRES(mu);
  // pre: settle_mine().
  void* carve(SizePool& pool, Block* block, Bytes size) GS_REQUIRES(mu);
  // The rest of free(): what the caller's cache did not keep.
  bool free_slowly(void* address, ThreadCache::Kept kept) GS_EXCLUDES(mu);

  // The arena whose blocks the caches may keep now.
  [[nodiscard]] std::optional<Route> cached_arena() const GS_REQUIRES(mu);
  // Tells the books what the caller's cache knows, so that their peaks stay exact; makes the cache
  // if there is none. Null if there can be none.
  ThreadCache* settle_mine() GS_REQUIRES(mu);
  void settle(ThreadCache& cache) GS_REQUIRES(mu, cache.lock);
  void empty(ThreadCache& cache) GS_REQUIRES(mu, cache.lock);
  void empty_mine(ThreadCache& cache) GS_REQUIRES(mu);
  void empty_locked_caches() GS_REQUIRES(mu);
  void mark_one_late(std::uintptr_t address) GS_REQUIRES(mu);
  void hide_spilled() GS_REQUIRES(mu);
  void put_back(Block* block) GS_REQUIRES(mu);
  void put_back_all(Block* first) GS_REQUIRES(mu);
  void on_thread_end(ThreadCache& cache) override GS_EXCLUDES(mu);

  Status add_segment(SizePool& pool, Bytes block_size) GS_REQUIRES(mu);
  // After a failure: a segment made for the request alone must not eat the address space.
  void remove_unused_segment() GS_REQUIRES(mu);
  tl::unexpected<Status> out_of_memory(Bytes size, const Status& reason) GS_REQUIRES(mu);
  DropOutcome drop_from(SizePool& pool, Block* block, const DropRequest& request) GS_REQUIRES(mu);
  void check_index() const GS_REQUIRES(mu);
  void check_locked() GS_REQUIRES(mu);

  const vm::AddressRange range_;
  BlockStore store_ GS_GUARDED_BY(mu);
  std::array<Arena, 2> arenas_ GS_GUARDED_BY(mu);  // by Route
  Route route_ GS_GUARDED_BY(mu) = Route::kPrivate;
  BlockIndex live_;             // changed under mu, searched without
  ThreadCaches caches_{*this};  // changed under mu; each thread may look for its own without
  Bytes used_address_space_ GS_GUARDED_BY(mu);  // segments lie below, nothing above
  SizePool* newest_pool_ GS_GUARDED_BY(mu) = nullptr;
  std::uint64_t num_checks_asked_ GS_GUARDED_BY(mu) = 0;
};

template <typename Wanted>
std::vector<ChunkRef> AllocatorCore::chunks_of(Route kind, Wanted wanted) {
  std::vector<ChunkRef> found;
  for (SizePool* pool : arena(kind).pools()) {
    const auto& segments = pool->segments();
    for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
      for (std::size_t i = (*segment)->num_chunks_in_all(); i-- > 0;) {
        if (wanted((*segment)->chunk(i))) found.push_back({segment->get(), i});
      }
    }
  }
  return found;
}

template <typename Wanted>
std::vector<ChunkRef> AllocatorCore::all_chunks(Wanted wanted) {
  std::vector<ChunkRef> found = chunks_of(Route::kPrivate, wanted);
  const std::vector<ChunkRef> outside = chunks_of(Route::kOutside, wanted);
  found.insert(found.end(), outside.begin(), outside.end());
  return found;
}

}  // namespace gpushare::alloc
