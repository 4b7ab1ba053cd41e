// Memory on its way back: ahead of the lease, before it opens, and in the iteration.
//
// What an iteration needs late (optimizer state, see CachingAllocator::mark_late) does not keep the
// lease closed: the client thread brings it back while the iteration runs, and the optimizer's step
// waits for the rest. Until then it is reachable, only slower, and nothing else takes its room,
// some of which may follow the lease.
#include "csrc/alloc/allocator/device_lag.h"
#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

// What was to follow a lease is asked for when nothing came for so long.
constexpr Nanos kNoneCame = millis(250);

}  // namespace

// pre: this thread moves (start_moving). Asks the coordinator for room if it must.
Status Runtime::Impl::restore_all() {
  Status status = restore_with(&alloc::Residency::restore);
  if (status.ok()) forget_late();
  return status;
}

// As restore_all(), but what an iteration needs late stays away if it can be reached.
// pre: the lease opens, or this is a boundary.
Status Runtime::Impl::restore_for_iteration() {
  // Between marked iterations other code may use anything, and no optimizer need be known.
  if (promises_iterations_) return restore_all();
  return restore_with(&alloc::Residency::restore_early);
}

// The iteration begins: the rest may come back.
void Runtime::Impl::expect_late() {
  const Bytes to_restore = residency_.to_restore();
  allocator_.expect_room(std::clamp(room_to_come(), Bytes{0}, to_restore));
  if (to_restore == Bytes{0}) return;
  has_late_.store(true, kRelaxed);
  has_room_ahead_ = true;
  wake_client_thread();
}

// The lease may have come before all room that the iteration needs: that follows.
Bytes Runtime::Impl::room_to_come() {
  const alloc::MemoryStats memory = allocator_.stats();
  Bytes needed = needed_room(memory) - memory.overflow_bytes;
  const Bytes limit = hard_limit();
  if (limit > Bytes{0}) needed = std::min(needed, limit - memory.lane_bytes);
  return needed - memory.room;
}

Status Runtime::Impl::restore_with(Status (alloc::Residency::*restore)()) {
  if (residency_.to_restore() == Bytes{0}) return {};
  const alloc::DeviceLag lag;
  for (bool is_said = false;; is_said = true) {
    mu_.unlock();
    Status status = (residency_.*restore)();
    mu_.lock();
    note_moved();
    if (!lag.explains(status, allocator_, residency_.to_restore())) return status;
    if (!is_said) {
      log::warn("job {} waits for memory that others gave up and the device still has: {}",
                address_.job.value, status.message());
    }
    changed_.wait_for(mu_, alloc::DeviceLag::kLook);
  }
}

void Runtime::Impl::note_moved() {
  moved_ = residency_.totals();
  if (page() != nullptr) publish_usage(*page());
}

void Runtime::Impl::forget_late() { has_late_.store(false, kRelaxed); }

// On the client thread, in steps short enough to answer others in between. When the next is due; no
// time: there is nothing more to do.
std::optional<Nanos> Runtime::Impl::restore_in_background() {
  Pace::Turn turn;
  {
    MutexLock lock(mu_);
    const bool may_restore =
        has_room_ahead_ && moving_ == Moving::kNone && !is_handling_ && is_restoring_of_use();
    Bytes most;
    if (may_restore) most = std::min(alloc::Residency::kPartBytes, residency_.to_restore());
    if (may_restore && is_parked_) most = std::min(most, most_ahead());
    turn = next_turn(most);
    if (turn.wait > Nanos{0}) return turn.wait;
    has_room_ahead_ = false;
    if (!may_restore) return std::nullopt;
    start_moving(Moving::kRestoring, monotonic_now());
  }
  const Result<Bytes> restored = residency_.restore_within_room(turn.bytes);
  MutexLock lock(mu_);
  note_moved();
  stop_moving();
  if (!restored.has_value()) {
    log::warn("job {} could not restore in the background: {}", address_.job.value,
              restored.error().message());
  }
  if (residency_.to_restore() == Bytes{0}) forget_late();
  has_room_ahead_ = restored.has_value() && *restored > Bytes{0};
  return has_room_ahead_ ? std::optional(Nanos{0}) : std::nullopt;
}

// How much may come back ahead of the lease: of late memory no more than leaves the room that the
// iteration needs from its beginning.
Bytes Runtime::Impl::most_ahead() {
  const alloc::MemoryStats memory = allocator_.stats();
  const Bytes resident{memory.reserved_bytes.all.current};
  const Bytes to_restore = residency_.to_restore();
  const Bytes ephemeral = needed_room(memory) - memory.overflow_bytes - resident - to_restore;
  const Bytes late = promises_iterations_ ? Bytes{0} : residency_.to_restore_late();
  return std::max(to_restore - late, memory.room - resident - ephemeral);
}

// In an iteration, and while the main thread still waits in the gate: what is missing then comes
// back with the lease.
bool Runtime::Impl::is_restoring_of_use() {
  const bool is_ahead =
      is_parked_ && page() != nullptr && wire::load(*page()).state() == wire::LeaseState::kWanted;
  return is_ahead || has_late();
}

// While room follows the lease: into what has come. Returns when it is all there, or none came for
// a while.
void Runtime::Impl::restore_what_follows() {
  while (link_ == Link::kAttached && allocator_.coming_room() > Bytes{0}) {
    mu_.unlock();
    // A failure is restore_all()'s to say, which tries it again.
    static_cast<void>(residency_.restore_within_room(alloc::Residency::kPartBytes));
    mu_.lock();
    note_moved();
    const Bytes coming = allocator_.coming_room();
    const Nanos deadline = monotonic_now() + kNoneCame;
    while (coming > Bytes{0} && allocator_.coming_room() == coming) {
      const Nanos left = deadline - monotonic_now();
      if (left <= Nanos{0} || is_interrupted_unlocked()) return;
      changed_.wait_for(mu_, std::min(left, kSignalCheck));
    }
  }
}

// Brings back what the client thread has not, with nobody's help. A failure is no error: the memory
// is reachable.
void Runtime::Impl::wait_for_late() {
  MutexLock lock(mu_);
  const Nanos start = monotonic_now();
  constexpr Nanos kAsLongAsItTakes = seconds(1'000'000);
  start_moving(Moving::kRestoring, start + kAsLongAsItTakes);
  if (has_late_.load(kRelaxed)) restore_what_follows();
  const Status status = has_late_.load(kRelaxed) ? restore_all() : Status();
  forget_late();  // also after a failure: the next lease tries again
  stop_moving();
  if (!status.ok()) {
    allocator_.forgo_late();
    log::warn("job {} uses {} of its memory in the host tier, slowly: {}", address_.job.value,
              to_string(residency_.to_restore()), status.message());
  }
  const Nanos waited = monotonic_now() - start;
  moving_time_ += waited;
  if (page() != nullptr) page()->stall_ns.fetch_add(waited.value(), kRelaxed);
}

// Whether an allocation that lacks room should wait for late memory rather than ask: new blocks
// keep off chunks that are away, also off what is free in them.
bool Runtime::Impl::has_late_for_others() {
  MutexLock lock(mu_);
  const bool restores =
      moving_ == Moving::kRestoring && moving_thread_ == std::this_thread::get_id();
  return has_late_.load(kRelaxed) && !restores;
}

}  // namespace gpushare::client
