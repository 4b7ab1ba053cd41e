// Memory on its way back, at three times: ahead of the lease, before it opens, and in the
// iteration.
//
// Ahead of the lease the client thread restores into room that is there already, while the main
// thread waits in the gate. Before the lease opens the main thread restores what the iteration
// needs from its beginning. Late memory (optimizer state, see CachingAllocator::mark_late) does not
// keep the lease closed: the client thread brings it back while the iteration runs, and the
// optimizer's step waits for the rest. Until then it is reachable, only slower, and nothing else
// takes its room. Some of that room may follow the lease.
//
// Only one thread moves memory at a time (start_restoring). The lock is let go during copies.
//
// What may go wrong: a restore finds no room or the device fails. Before the lease opens that
// closes the lease. Late memory then stays where it is and is used there, slowly.
#include "csrc/alloc/allocator/device_lag.h"
#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

// If no room came for this long, the step stops waiting for room that follows the lease, and asks
// for it.
constexpr Nanos kNoneCame = millis(250);

}  // namespace

// Restores everything, late memory too. Asks the coordinator for room if it must. pre: this thread
// moves (start_restoring).
Status Runtime::Impl::restore_all() {
  Status status = restore_with(&alloc::Residency::restore);
  if (status.ok()) forget_late();
  return status;
}

// As restore_all(), but late memory stays away if it can be reached. pre: the lease opens, or this
// is a boundary.
Status Runtime::Impl::restore_for_iteration() {
  // Between marked iterations other code may use anything, and no optimizer need be known.
  if (gap_reasons_.promises_iterations()) return restore_all();
  return restore_with(&alloc::Residency::restore_early);
}

// The iteration begins. Whatever is still away may come back now, by the client thread. The books
// expect the room that follows the lease, so that allocations do not wait for it.
void Runtime::Impl::expect_late() {
  const Bytes to_restore = residency_.to_restore();
  allocator_.expect_room(std::clamp(room_to_come(), Bytes{0}, to_restore));
  if (to_restore == Bytes{0}) return;
  fast_.set_late(true);
  moves_.set_room_ahead(true);
  thread_.wake();
}

// The room that the iteration needs less the room that the job has. The lease may have come before
// all of it; the rest follows in Grants.
Bytes Runtime::Impl::room_to_come() {
  const alloc::MemoryStats memory = allocator_.stats();
  Bytes needed = needed_room(memory) - memory.overflow_bytes;
  const Bytes limit = registration_.hard_limit();
  if (limit > Bytes{0}) needed = std::min(needed, limit - memory.lane_bytes);
  return needed - memory.room;
}

// Restores, and tries again while the device is late. A process that was killed may hold its memory
// for a moment after the books have given it away (device_lag.h).
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
                link_.job().value, status.message());
    }
    changed_.wait_for(mu_, alloc::DeviceLag::kLook);
  }
}

void Runtime::Impl::note_moved() {
  moves_.note_totals(residency_.totals());
  if (page() != nullptr) publish_usage(*page());
}

void Runtime::Impl::forget_late() { fast_.set_late(false); }

// On the client thread: restores one part, short enough to answer others in between. Returns when
// the next part is due; no time if there is nothing more to do. has_room_ahead() says that there
// may be room unused. It is cleared before the part and set again if the part brought bytes back.
std::optional<Nanos> Runtime::Impl::restore_in_background() {
  Pace::Turn turn;
  {
    MutexLock lock(mu_);
    const bool may_restore = moves_.has_room_ahead() && moves_.is_still() && !gate_.is_handling() &&
                             is_restoring_of_use();
    Bytes most;
    if (may_restore) most = std::min(alloc::Residency::kPartBytes, residency_.to_restore());
    if (may_restore && gate_.is_parked()) most = std::min(most, most_ahead());
    turn = next_turn(most);
    if (turn.wait > Nanos{0}) return turn.wait;
    moves_.set_room_ahead(false);
    if (!may_restore) return std::nullopt;
    start_restoring(monotonic_now());
  }
  const Result<Bytes> restored = residency_.restore_within_room(turn.bytes);
  MutexLock lock(mu_);
  note_moved();
  stop_moving();
  if (!restored.has_value()) {
    log::warn("job {} could not restore in the background: {}", link_.job().value,
              restored.error().message());
  }
  if (residency_.to_restore() == Bytes{0}) forget_late();
  const bool may_go_on = restored.has_value() && *restored > Bytes{0};
  moves_.set_room_ahead(may_go_on);
  return may_go_on ? std::optional(Nanos{0}) : std::nullopt;
}

// The most that may come back ahead of the lease. Late memory may take only what is left of the
// room when the iteration's other needs are met.
Bytes Runtime::Impl::most_ahead() {
  const alloc::MemoryStats memory = allocator_.stats();
  const Bytes resident{memory.reserved_bytes.all.current};
  const Bytes to_restore = residency_.to_restore();
  const Bytes ephemeral = needed_room(memory) - memory.overflow_bytes - resident - to_restore;
  const Bytes late = gap_reasons_.promises_iterations() ? Bytes{0} : residency_.to_restore_late();
  return std::max(to_restore - late, memory.room - resident - ephemeral);
}

// Whether a restore in the background is of use now: in an iteration that has late memory, and
// while the main thread waits in the gate for a lease. Anything else comes back with the lease.
bool Runtime::Impl::is_restoring_of_use() {
  const bool is_ahead = gate_.is_parked() && page() != nullptr &&
                        wire::load(*page()).state() == wire::LeaseState::kWanted;
  return is_ahead || has_late();
}

// Restores into room that follows the lease, as it comes. Returns when all of it has come, or none
// came for a while.
void Runtime::Impl::restore_what_follows() {
  while (link_.is_attached() && allocator_.coming_room() > Bytes{0}) {
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

// Called before an optimizer's step. Brings back what the client thread has not: first into room
// that follows the lease, then with room that this thread asks for. A failure is no error, since
// the memory is reachable: the step then uses it in the host tier.
void Runtime::Impl::wait_for_late() {
  MutexLock lock(mu_);
  const Nanos start = monotonic_now();
  constexpr Nanos kAsLongAsItTakes = seconds(1'000'000);
  start_restoring(start + kAsLongAsItTakes);
  if (fast_.has_late()) restore_what_follows();
  const Status status = fast_.has_late() ? restore_all() : Status();
  forget_late();  // also after a failure: the next lease tries again
  stop_moving();
  if (!status.ok()) {
    allocator_.forgo_late();
    log::warn("job {} uses {} of its memory in the host tier, slowly: {}", link_.job().value,
              to_string(residency_.to_restore()), status.message());
  }
  const Nanos waited = monotonic_now() - start;
  times_.add_moving(waited);
  if (page() != nullptr) page()->stall_ns.fetch_add(waited.value(), kRelaxed);
}

// Whether an allocation that lacks room should wait for late memory rather than ask. New blocks
// keep off chunks that are away, and so off the free parts of them. The thread that restores cannot
// wait for itself.
bool Runtime::Impl::has_late_for_others() {
  MutexLock lock(mu_);
  return fast_.has_late() && !moves_.is_restored_by(std::this_thread::get_id());
}

}  // namespace gpushare::client
