// The face of the allocator: each call takes the core's lock and forwards, except allocate(),
// free() and what never changes, which take it themselves or need none. Figures and snapshots are
// read after the threads' caches were emptied, since a kept block counts as in use for its pool. So
// the figures are exact, and reading them costs a little.
#include "csrc/alloc/allocator/caching_allocator.h"

#include <algorithm>
#include <utility>

#include "csrc/alloc/allocator/caching_allocator_impl.h"
#include "csrc/alloc/allocator/unused_memory.h"
#include "csrc/base/check.h"

namespace gpushare::alloc {

CachingAllocator::CachingAllocator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CachingAllocator::~CachingAllocator() = default;

// Reserves all addresses at once. Segments are cut out of this one range later, so that owns() is a
// comparison of two addresses, and no other library can come in between.
Result<std::unique_ptr<CachingAllocator>> CachingAllocator::create(
    vm::Vmm& vmm, const AllocatorOptions& options) {
  const Bytes size = round_up(options.address_space, vm::kChunkBytes);
  if (size <= Bytes{}) {
    return fail(StatusCode::kInvalidArgument,
                "an address space of " + to_string(options.address_space));
  }
  Result<vm::AddressRange> range = vmm.reserve(size);
  if (!range) return fail(std::move(range.error()));
  auto impl = std::make_unique<Impl>(vmm, std::move(*range), options);
  return std::unique_ptr<CachingAllocator>(new CachingAllocator(std::move(impl)));
}

// No lock here: the core first looks into the thread's own cache, and takes its lock only if that
// has no block.
Result<void*> CachingAllocator::allocate(Bytes size, Patience patience) {
  return impl_->core.allocate(size, patience);
}

bool CachingAllocator::free(void* address) { return impl_->core.free(address); }

bool CachingAllocator::owns(const void* address) const {
  return impl_->core.range().contains(address);
}

std::pair<std::byte*, Bytes> CachingAllocator::reserved_range() const {
  return {impl_->core.range().base(), impl_->core.range().size()};
}

void CachingAllocator::set_room_source(RoomSource* source) {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.room_source = source;
}

void CachingAllocator::raise_room(Bytes room) {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.books.raise_room(room);
}

void CachingAllocator::set_room(Bytes room) {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.books.set_room(room);
}

void CachingAllocator::expect_room(Bytes coming) {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.books.expect_room(coming);
}

void CachingAllocator::forgo_late() {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.books.forgo_late();
}

Bytes CachingAllocator::coming_room() const {
  const AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  return core.books.coming();
}

Bytes CachingAllocator::room() const {
  const AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  return core.books.room();
}

Bytes CachingAllocator::backed() const {
  const AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  return core.books.backed();
}

// The following need no lock, since what they read is set at the start and never changes.
bool CachingAllocator::can_move_in_use() const { return impl_->core.vmm.traps_writers(); }

Bytes CachingAllocator::overflow() const {
  const AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  return core.books.overflow();
}

Bytes CachingAllocator::most_piece() const { return impl_->core.vmm.most_piece(); }

// When the lease opens again, what was noted of torch's use is void: torch hands its memory out
// again.
void CachingAllocator::set_route(Route route) {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.set_route(route);
  if (route == Route::kPrivate && core.has_noted_use) forget_use(core);
}

// Only while the lease is closed: torch's blocks stand still then, and the notes say which chunks
// hold live ones.
void CachingAllocator::note_use(const MemoryUse& use) {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  GS_CHECK(core.route() == Route::kOutside);
  alloc::note_use(core, use);
}

// Counted chunk by chunk: no figure of it is kept.
Bytes CachingAllocator::staying() const {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  const auto stays = [](const Chunk& chunk) { return chunk.is_booked() && chunk.must_stay; };
  return chunks(core.all_chunks(stays).size());
}

Route CachingAllocator::route() const {
  const AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  return core.route();
}

// A forked child gives nothing up: its memory is copies of its parent's.
Bytes CachingAllocator::empty_cache() {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  if (core.is_forked_child) return Bytes{};
  core.empty_caches();
  const Bytes dropped = core.drop_free_chunks({.target = core.books.backed()}).dropped;
  GS_EXPENSIVE_CHECK(core.check_invariants());
  return dropped;
}

// The caches are emptied first in all that follows, for the reason at the top of this file.
MemoryStats CachingAllocator::stats() const {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.empty_caches();
  return core.books.stats();
}

Bytes CachingAllocator::live_private() const {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  return core.live_private();
}

void CachingAllocator::reset_peak_stats() {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.empty_caches();
  core.books.reset_peak_stats();
}

void CachingAllocator::reset_accumulated_stats() {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.empty_caches();
  core.books.reset_accumulated_stats();
}

std::vector<SegmentInfo> CachingAllocator::snapshot() const {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  return core.snapshot();
}

Bytes CachingAllocator::take_peak_backed() {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  return core.books.take_peak_backed();
}

void CachingAllocator::mark_late(std::span<const std::uintptr_t> addresses) {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.mark_late(addresses);
  GS_EXPENSIVE_CHECK(core.check_invariants());
}

// The locks are taken in one function and let go in two others, which the analysis cannot follow.
void CachingAllocator::before_fork() GS_NO_THREAD_SAFETY_ANALYSIS { impl_->core.before_fork(); }

void CachingAllocator::after_fork_in_parent() GS_NO_THREAD_SAFETY_ANALYSIS {
  impl_->core.after_fork(false);
}

void CachingAllocator::after_fork_in_child() GS_NO_THREAD_SAFETY_ANALYSIS {
  impl_->core.after_fork(true);
}

void CachingAllocator::check_invariants() const {
  AllocatorCore& core = impl_->core;
  MutexLock lock(core.mu);
  core.check_invariants();
}

}  // namespace gpushare::alloc
