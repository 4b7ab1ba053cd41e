// How close() and open() treat lane chunks, and in which order.
//
// close(), with the lease closed:
// 1. Lane chunks with a live block are donated: they stay where they are, as the job's own memory.
// 2. Lane chunks that no block lay over for 16 leases in a row leave the lane.
// 3. The rest is zeroed and made inaccessible, where that is asked for.
// 4. Donated chunks whose file has no owner any more become private, by a copy.
// 5. Private and donated chunks that were free at enough closes in a row are promoted: their memory
//    is given up.
//
// open(), with the lease open and before it is used, gives each member a slot. A member that has a
// slot of the first ones keeps it, so mostly nothing is mapped. Members beyond the number of slots
// become private chunks without memory.
//
// Both hold the allocator's lock for all their work, so no block comes to lie over a chunk that
// changes hands. Donation comes first, since from then on no member has a live block. A system call
// that fails leaves its chunk as it was, and the next close or open tries again.
#include "csrc/alloc/residency/lane_chunks.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "csrc/alloc/allocator/caching_allocator_impl.h"
#include "csrc/base/check.h"
#include "csrc/base/log.h"

namespace gpushare::alloc {
namespace {

constexpr int kMostDoublings = 8;  // of the closes after a setback
constexpr int kMostCounted = 0xffff;

// After each setback the chunk has to be free for twice as many closes before it is promoted again.
void note_setback(Chunk& chunk) {
  if (chunk.num_setbacks < UINT8_MAX) ++chunk.num_setbacks;
}

ChunkRefs donated(AllocatorCore& core) GS_REQUIRES(core.mu) {
  return core.private_chunks([](const Chunk& chunk) { return chunk.backing == Backing::kDonated; });
}

// Counts one more close for each private or donated chunk that is not kUnbacked. Returns those that
// were free at enough closes in a row. A chunk that is in use now starts at 0.
ChunkRefs count_closes(AllocatorCore& core) GS_REQUIRES(core.mu) {
  ChunkRefs free = core.private_chunks([](Chunk& chunk) {
    if (chunk.backing == Backing::kLane || chunk.state == ChunkState::kUnbacked) return false;
    const bool is_free = chunk.state == ChunkState::kResident && chunk.num_live == 0;
    const int closes = is_free ? std::min(chunk.num_free_closes + 1, kMostCounted) : 0;
    chunk.num_free_closes = static_cast<std::uint16_t>(closes);
    return closes >= LaneChunks::kFreeCloses << std::min<int>(chunk.num_setbacks, kMostDoublings);
  });
  std::sort(free.begin(), free.end(), is_below);
  return free;
}

// Members that have a slot, in the order of `refs`.
ChunkRefs mapped_of(const ChunkRefs& refs) {
  ChunkRefs mapped;
  std::copy_if(refs.begin(), refs.end(), std::back_inserter(mapped), is_mapped);
  return mapped;
}

// The chunk becomes a private one without memory. Like any other it gets memory when a block needs
// it.
void leave_pool(Chunk& chunk) {
  chunk.backing = Backing::kPrivate;
  chunk.num_free_closes = 0;
}

// Copies a donated chunk to private memory. If that fails, the chunk stays donated.
void make_private(AllocatorCore& core, const ChunkRef& ref) GS_REQUIRES(core.mu) {
  // A chunk that is spilled or moving is on its way to private memory already.
  if (!is_mapped(ref)) return;
  const Status status = core.vmm.make_private(ref.address(), chunks(1));
  if (status.ok()) {
    core.books.note_private(ref.chunk());
  } else {
    log::error("{}", status.to_string());
  }
}

}  // namespace

LaneChange LaneChunks::close(const CloseOptions& options) {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  donate_live(core);
  retire_unused(core);
  for (const ChunkRef& ref : members_) {
    if (options.scrub && is_mapped(ref)) std::memset(ref.address(), 0, kChunkSize);
  }
  if (options.is_strict) forbid_access(core);
  LaneChange change;
  change.donated = std::exchange(donated_, {});
  for (const ChunkRef& ref : donated(core)) {
    if (ref.chunk().lane_slot == kNoLaneSlot) make_private(core, ref);
  }
  const bool may_promote = options.may_promote && core.vmm.can_share();
  ChunkRefs free = may_promote ? count_closes(core) : ChunkRefs{};
  const std::size_t num_taken = members_.size() + num_chunks(core.books.donated());
  free.resize(std::min(free.size(), kMostChunks - std::min(kMostChunks, num_taken)));
  // If more is backed than there is room for, memory that is given up only makes up for that. The
  // pool would not grow by it, so nothing is promoted.
  if (may_promote && !free.empty() && core.books.beyond_room() == Bytes{}) {
    change.given = promote(core, free);
    core.books.take_peak_backed();  // what was given up is no part of the next iteration's need
  }
  change.returned = core.books.take_returned_slots();
  GS_EXPENSIVE_CHECK(core.check_invariants());
  return change;
}

// Nothing is copied and nothing mapped: only the books change. The coordinator learns the slots
// from LaneChange, and no other job uses them from then on.
void LaneChunks::donate_live(AllocatorCore& core) {
  for (const ChunkRef& ref : members_) {
    Chunk& chunk = ref.chunk();
    if (chunk.num_live == 0) continue;
    donated_.push_back(chunk.lane_slot);
    core.books.donate(*ref.segment, chunk);
    chunk.num_free_closes = 0;
    note_setback(chunk);
  }
  forget_former_members();
}

// members_ are the chunks whose backing is kLane. This takes out those that just stopped being so.
void LaneChunks::forget_former_members() {
  std::erase_if(members_,
                [](const ChunkRef& ref) { return ref.chunk().backing != Backing::kLane; });
}

// Each member counts the leases in a row in which no block lay over it. A member without a slot had
// no chance to be used, so its count starts anew.
void LaneChunks::retire_unused(AllocatorCore& core) {
  ChunkRefs unused;
  for (const ChunkRef& ref : members_) {
    Chunk& chunk = ref.chunk();
    const bool was_used = std::exchange(chunk.was_used, false) || !is_mapped(ref);
    chunk.num_free_closes = static_cast<std::uint16_t>(was_used ? 0 : chunk.num_free_closes + 1);
    if (chunk.num_free_closes >= kUnusedCloses) unused.push_back(ref);
  }
  if (unused.empty()) return;
  // If it fails, the members that are still mapped are tried again at the next close.
  if (const Status status = unmap_slots(core, unused); !status.ok())
    log::warn("{}", status.to_string());
  for (const ChunkRef& ref : unused) {
    if (!is_mapped(ref)) leave_pool(ref.chunk());
  }
  forget_former_members();
  core.arena(Route::kPrivate).recount_all();
}

// Until the next open, access to the slots is a fault.
void LaneChunks::forbid_access(AllocatorCore& core) {
  is_forbidden_ = true;
  forbid_slots(core, mapped_of(members_));
}

Status LaneChunks::allow_access(AllocatorCore& core) {
  if (!is_forbidden_) return {};
  GS_RETURN_IF_ERROR(allow_slots(core, mapped_of(members_)));
  is_forbidden_ = false;
  return {};
}

// Gives up the private memory of `free` and makes the chunks members, without a slot until the next
// open. Returns how much lower the room is: by so much the pool may rise.
Bytes LaneChunks::promote(AllocatorCore& core, const ChunkRefs& free) {
  const Bytes lowered = give_up_memory(core, free, members_);
  std::sort(members_.begin(), members_.end(), is_below);
  core.arena(Route::kPrivate).recount_all();
  return lowered;
}

// `file` below 0: nobody gets a slot, and all members leave (leave()).
Status LaneChunks::open(int file, const std::vector<std::uint32_t>& slots, const Ends& ends) {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  const bool is_leaving = file < 0;
  const bool was_forbidden = is_forbidden_;
  if (!is_leaving) GS_RETURN_IF_ERROR(allow_access(core));
  const auto end =
      slots.begin() + static_cast<std::ptrdiff_t>(std::min(slots.size(), members_.size()));
  // The slots that this job may use; those that a member has already are taken out below. A member
  // whose slot is not among them is stale: it is unmapped and gets another.
  std::set<std::uint32_t> unused(slots.begin(), end);
  ChunkRefs lacking;
  ChunkRefs stale;
  for (const ChunkRef& ref : members_) {
    if (is_mapped(ref) && unused.erase(ref.chunk().lane_slot) > 0) continue;
    lacking.push_back(ref);
    if (is_mapped(ref)) stale.push_back(ref);
  }
  if (lacking.empty()) return {};
  Status status = unmap_slots(core, stale);
  const std::size_t num_to_map = std::min(unused.size(), lacking.size());
  if (status.ok()) {
    for (std::size_t i = num_to_map; i < lacking.size(); ++i) {
      leave_pool(lacking[i].chunk());
      if (!is_leaving) note_setback(lacking[i].chunk());
    }
    forget_former_members();
    if (is_leaving) is_forbidden_ = false;
    lacking.resize(num_to_map);
    status = map_slots(core, lacking, {unused.begin(), unused.end()}, file, ends);
  }
  if (status.code() == StatusCode::kCancelled && was_forbidden) forbid_access(core);
  core.arena(Route::kPrivate).recount_all();
  GS_EXPENSIVE_CHECK(core.check_invariants());
  return status;
}

// All members become private chunks without memory.
Status LaneChunks::leave() { return open(-1, {}); }

// Members have to be free for longer before they come back, and all other chunks are counted from
// the start.
Status LaneChunks::stay_out() {
  {
    AllocatorCore& core = allocator_.impl_->core;
    MutexLock lock(core.mu);
    for (const ChunkRef& ref : members_)
      note_setback(ref.chunk());
    static_cast<void>(core.private_chunks([](Chunk& chunk) {
      chunk.num_free_closes = 0;
      return false;
    }));
  }
  return leave();
}

// While the lease is open members may hold live blocks, and nobody else has the slots until the
// coordinator is back. So they are kept as donated. While it is closed they are empty, and go.
Status LaneChunks::on_disconnect(bool is_open) {
  donated_.clear();
  // Another coordinator's file has slots with the same numbers, so the old numbers must not be
  // taken for those.
  AllocatorCore& core = allocator_.impl_->core;
  if (!is_open) {
    {
      MutexLock lock(core.mu);
      for (const ChunkRef& ref : members_)
        ref.chunk().lane_slot = kNoLaneSlot;
    }
    return leave();
  }
  MutexLock lock(core.mu);
  core.books.take_returned_slots();
  for (const ChunkRef& ref : members_) {
    if (is_mapped(ref)) {
      core.books.donate(*ref.segment, ref.chunk());
    } else {
      ref.chunk().backing = Backing::kPrivate;
      ref.chunk().num_free_closes = 0;
    }
  }
  members_.clear();
  GS_EXPENSIVE_CHECK(core.check_invariants());
  return {};
}

void LaneChunks::forget_slots() {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  for (const ChunkRef& ref : donated(core))
    ref.chunk().lane_slot = kNoLaneSlot;
  donated_.clear();
  core.books.take_returned_slots();
}

// A forked child must not read what other jobs write, nor write to their memory. So live chunks and
// donated ones become copies of this process's own. The caches are emptied first, since a block
// that is only kept would count as live.
void LaneChunks::make_live_private() {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  if (members_.empty() && core.books.donated() == Bytes{}) return;
  core.empty_caches();
  donate_live(core);
  for (const ChunkRef& ref : donated(core))
    make_private(core, ref);
  GS_EXPENSIVE_CHECK(core.check_invariants());
}

bool LaneChunks::has_forgotten() const {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  const ChunkRefs refs = donated(core);
  return std::any_of(refs.begin(), refs.end(),
                     [](const ChunkRef& ref) { return ref.chunk().lane_slot == kNoLaneSlot; });
}

std::vector<std::uint32_t> LaneChunks::donated_slots() const {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  std::vector<std::uint32_t> slots;
  for (const ChunkRef& ref : donated(core)) {
    if (ref.chunk().lane_slot != kNoLaneSlot) slots.push_back(ref.chunk().lane_slot);
  }
  std::sort(slots.begin(), slots.end());
  return slots;
}

}  // namespace gpushare::alloc
