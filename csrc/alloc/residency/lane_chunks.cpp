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

using Refs = std::vector<ChunkRef>;

constexpr int kMostDoublings = 8;  // of the closes after a setback
constexpr int kMostCounted = 0xffff;

bool is_mapped(const ChunkRef& ref) { return ref.chunk().state == ChunkState::kResident; }

bool is_below(const ChunkRef& a, const ChunkRef& b) { return a.address() < b.address(); }

// Each time the chunk has to be free for longer.
void note_setback(Chunk& chunk) {
  if (chunk.num_setbacks < UINT8_MAX) ++chunk.num_setbacks;
}

bool is_any(std::size_t /*index*/) { return true; }

// Runs of neighbours, of which one call can map all.
template <typename IsNext>
std::vector<ChunkRange> runs_of(const Refs& refs, IsNext is_next) {
  std::vector<ChunkRange> runs;
  for (std::size_t first = 0; first < refs.size();) {
    std::size_t last = first + 1;
    while (last < refs.size() && refs[last].address() == refs[last - 1].address() + kChunkSize &&
           is_next(last)) {
      ++last;
    }
    runs.push_back({first, last});
    first = last;
  }
  return runs;
}

Refs donated(AllocatorCore& core) GS_REQUIRES(core.mu) {
  return core.private_chunks([](const Chunk& chunk) { return chunk.backing == Backing::kDonated; });
}

// Those that were free often enough.
Refs count_closes(AllocatorCore& core) GS_REQUIRES(core.mu) {
  Refs free = core.private_chunks([](Chunk& chunk) {
    if (chunk.backing == Backing::kLane || chunk.state == ChunkState::kUnbacked) return false;
    const bool is_free = chunk.state == ChunkState::kResident && chunk.num_live == 0;
    const int closes = is_free ? std::min(chunk.num_free_closes + 1, kMostCounted) : 0;
    chunk.num_free_closes = static_cast<std::uint16_t>(closes);
    return closes >= LaneChunks::kFreeCloses << std::min<int>(chunk.num_setbacks, kMostDoublings);
  });
  std::sort(free.begin(), free.end(), is_below);
  return free;
}

Refs mapped_of(const Refs& refs) {
  Refs mapped;
  std::copy_if(refs.begin(), refs.end(), std::back_inserter(mapped), is_mapped);
  return mapped;
}

// It is without memory, and grows by Needs as any other.
void leave_pool(Chunk& chunk) {
  chunk.backing = Backing::kPrivate;
  chunk.num_free_closes = 0;
}

// Where it fails, the chunk stays as it is.
void make_private(AllocatorCore& core, const ChunkRef& ref) GS_REQUIRES(core.mu) {
  // One that is spilled or moving is on its way to private memory.
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
  Refs free = may_promote ? count_closes(core) : Refs{};
  const std::size_t num_taken = members_.size() + num_chunks(core.books.donated());
  free.resize(std::min(free.size(), kMostChunks - std::min(kMostChunks, num_taken)));
  // Beyond the room, what is given up would be nobody's to share.
  if (may_promote && !free.empty() && core.books.beyond_room() == Bytes{}) {
    change.given = promote(core, free);
    core.books.take_peak_backed();  // what was given up is no part of the next iteration's need
  }
  change.returned = core.books.take_returned_slots();
  GS_EXPENSIVE_CHECK(core.check_invariants());
  return change;
}

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

void LaneChunks::forget_former_members() {
  std::erase_if(members_,
                [](const ChunkRef& ref) { return ref.chunk().backing != Backing::kLane; });
}

void LaneChunks::retire_unused(AllocatorCore& core) {
  Refs unused;
  for (const ChunkRef& ref : members_) {
    Chunk& chunk = ref.chunk();
    const bool was_used = std::exchange(chunk.was_used, false) || !is_mapped(ref);
    chunk.num_free_closes = static_cast<std::uint16_t>(was_used ? 0 : chunk.num_free_closes + 1);
    if (chunk.num_free_closes >= kUnusedCloses) unused.push_back(ref);
  }
  if (unused.empty()) return;
  // Where it fails, the rest is tried again at the next close.
  if (const Status status = unmap(core, unused); !status.ok()) log::warn("{}", status.to_string());
  for (const ChunkRef& ref : unused) {
    if (!is_mapped(ref)) leave_pool(ref.chunk());
  }
  forget_former_members();
  core.arena(Route::kPrivate).recount_all();
}

// One call for a run of neighbours, as they are mapped.
void LaneChunks::forbid_access(AllocatorCore& core) {
  is_forbidden_ = true;
  const Refs mapped = mapped_of(members_);
  for (const ChunkRange& run : runs_of(mapped, is_any)) {
    const Status status = core.vmm.forbid_access(mapped[run.first].address(), chunks(run.size()));
    if (!status.ok()) log::warn("shared memory stays readable: {}", status.to_string());
  }
}

Status LaneChunks::allow_access(AllocatorCore& core) {
  if (!is_forbidden_) return {};
  const Refs mapped = mapped_of(members_);
  for (const ChunkRange& run : runs_of(mapped, is_any)) {
    GS_RETURN_IF_ERROR(core.vmm.allow_access(mapped[run.first].address(), chunks(run.size())));
  }
  is_forbidden_ = false;
  return {};
}

// Returns how much lower the room is.
Bytes LaneChunks::promote(AllocatorCore& core, const Refs& free) {
  const auto runs = runs_of(
      free, [&](std::size_t i) { return free[i].chunk().backing == free[i - 1].chunk().backing; });
  Bytes lowered;
  for (const ChunkRange& run : runs) {
    const Status status = core.vmm.unback(free[run.first].address(), chunks(run.size()));
    if (!status.ok()) {
      log::warn("free memory could not be shared: {}", status.to_string());
      break;
    }
    for (std::size_t i = run.first; i < run.last; ++i) {
      core.books.move(*free[i].segment, free[i].chunk(), ChunkState::kUnbacked);
      free[i].chunk().backing = Backing::kLane;
      members_.push_back(free[i]);
    }
    lowered += core.books.lower_room(chunks(run.size()));
  }
  std::sort(members_.begin(), members_.end(), is_below);
  core.arena(Route::kPrivate).recount_all();
  return lowered;
}

Status LaneChunks::open(int file, const std::vector<std::uint32_t>& slots) {
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  const bool is_leaving = file < 0;
  if (!is_leaving) GS_RETURN_IF_ERROR(allow_access(core));
  const auto end =
      slots.begin() + static_cast<std::ptrdiff_t>(std::min(slots.size(), members_.size()));
  std::set<std::uint32_t> unused(slots.begin(), end);
  Refs lacking;
  Refs stale;
  for (const ChunkRef& ref : members_) {
    if (is_mapped(ref) && unused.erase(ref.chunk().lane_slot) > 0) continue;
    lacking.push_back(ref);
    if (is_mapped(ref)) stale.push_back(ref);
  }
  if (lacking.empty()) return {};
  Status status = unmap(core, stale);
  const std::size_t num_to_map = std::min(unused.size(), lacking.size());
  if (status.ok()) {
    for (std::size_t i = num_to_map; i < lacking.size(); ++i) {
      leave_pool(lacking[i].chunk());
      if (!is_leaving) note_setback(lacking[i].chunk());
    }
    forget_former_members();
    if (is_leaving) is_forbidden_ = false;
    lacking.resize(num_to_map);
    status = map(core, lacking, {unused.begin(), unused.end()}, file);
  }
  core.arena(Route::kPrivate).recount_all();
  GS_EXPENSIVE_CHECK(core.check_invariants());
  return status;
}

Status LaneChunks::map(AllocatorCore& core,
                       const Refs& lacking,
                       const std::vector<std::uint32_t>& slots,
                       int file) {
  const auto runs = runs_of(lacking, [&](std::size_t i) { return slots[i] == slots[i - 1] + 1; });
  for (const ChunkRange& run : runs) {
    GS_RETURN_IF_ERROR(core.vmm.map_shared(lacking[run.first].address(), chunks(run.size()), file,
                                           chunks(slots[run.first])));
    for (std::size_t i = run.first; i < run.last; ++i) {
      core.books.move(*lacking[i].segment, lacking[i].chunk(), ChunkState::kResident);
      lacking[i].chunk().lane_slot = slots[i];
    }
  }
  return {};
}

Status LaneChunks::unmap(AllocatorCore& core, const Refs& mapped) {
  for (const ChunkRange& run : runs_of(mapped, is_any)) {
    GS_RETURN_IF_ERROR(core.vmm.unmap_shared(mapped[run.first].address(), chunks(run.size())));
    for (std::size_t i = run.first; i < run.last; ++i) {
      Chunk& chunk = mapped[i].chunk();
      GS_CHECK(chunk.num_live == 0, "a lane chunk with {} live blocks", chunk.num_live);
      core.books.move(*mapped[i].segment, chunk, ChunkState::kUnbacked);
      chunk.lane_slot = kNoLaneSlot;
    }
  }
  return {};
}

Status LaneChunks::leave() { return open(-1, {}); }

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

Status LaneChunks::on_disconnect(bool is_open) {
  donated_.clear();
  // Another file's slots have the same numbers.
  if (!is_open) {
    for (const ChunkRef& ref : members_)
      ref.chunk().lane_slot = kNoLaneSlot;
    return leave();
  }
  AllocatorCore& core = allocator_.impl_->core;
  MutexLock lock(core.mu);
  core.books.take_returned_slots();
  for (const ChunkRef& ref : members_) {
    if (is_mapped(ref)) {
      core.books.donate(*ref.segment, ref.chunk());
    } else {
      ref.chunk().backing = Backing::kPrivate;
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
  const Refs refs = donated(core);
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
