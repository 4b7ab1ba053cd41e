// Asking for more room, on the thread whose allocation lacks it. wire/messages.h has the rules;
// room.cpp gives room back.
//
// grow() decides in this order. Late memory that is on its way back is waited for first, since
// blocks in it may be free. Then the process attaches, if it has not. Then a managed job asks the
// coordinator: with a Need that may wait, or with one for free room only (Patience::kOnlyFree), if
// the caller holds a lock that other threads want. An unmanaged job has the room that it has.
//
// A thread that waits here has not returned from its allocation. So its memory may leave meanwhile,
// as in the gate (is_stopped_for_room in room.cpp), and it is back before the wait returns.
//
// What may go wrong: the coordinator denies the room, or answers nothing any more: out of memory.
// Ctrl-C ends the wait with kCancelled.
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

// The least that a request wishes for. A model grows by many small steps, and each request is a
// message and an answer.
constexpr Bytes kLeastLike = mib(32);
// The limit for an answer that the coordinator gives in the same step. Such an answer takes far
// less.
constexpr Nanos kAtOnce = seconds(1);
// When the log first says that this thread waits, and how often then. A silent wait is taken for a
// hang.
constexpr Nanos kFirstLine = seconds(5);
constexpr Nanos kNextLine = seconds(60);

}  // namespace

Status Runtime::Impl::grow(const alloc::RoomRequest& request) {
  const Bytes bytes = request.bytes;
  const bool may_wait = request.patience == alloc::Patience::kWaits;
  if (may_wait && has_late() && has_late_for_others()) {
    wait_for_late();
    return {};  // trying again may do
  }
  const Bytes before = allocator_.room();
  // Any failure but kCancelled has made the job unmanaged, and is dealt with as that below.
  const Status attached = attach();
  if (attached.code() == StatusCode::kCancelled) return attached;
  const bool is_unmovable =
      config_.is_in_parallel_region != nullptr && config_.is_in_parallel_region();
  MutexLock lock(mu_);
  if (!link_.is_unmanaged() && !link_.is_forked()) {
    alloc::RoomRequest wish = request;
    wish.like = round_up(std::max({bytes, request.like, kLeastLike}), vm::kChunkBytes);
    const Status answer = may_wait ? wait_for_room(wish, is_unmovable) : ask_for_free_room(wish);
    if (answer.code() == StatusCode::kCancelled) return answer;
    // Another thread, which asked at the same time, may have been given enough for both.
    const Bytes room = allocator_.room();
    const bool is_given = room > before && room - allocator_.backed() >= bytes;
    if (!answer.ok() && !is_given) return answer;
    if (!link_.is_unmanaged()) return {};
  }
  // Unmanaged, the room is what it is; becoming unmanaged may have raised it just now.
  if (allocator_.room() - before >= bytes) return {};
  const Bytes backed = allocator_.backed();
  return {StatusCode::kOutOfMemory,
          fmt::format("this job is unmanaged: its room is {}, {} of it is in use, {} more cannot "
                      "be had",
                      to_string(config_.unmanaged_room), to_string(backed), to_string(bytes))};
}

// Sends a Need and waits for its answer. Memory that left meanwhile is back when it returns.
// errors: as grow().
Status Runtime::Impl::wait_for_room(const alloc::RoomRequest& request, bool is_unmovable) {
  const std::uint64_t n = needs_.add(request);
  // Without a connection now, the client thread sends it when it has one again.
  send(needs_.message(n, link_.address()));
  const Status waited = wait_stopped(n, request.bytes, is_unmovable);
  restore_before_going_on();
  const Status answer = needs_.take(n);
  GS_RETURN_IF_ERROR(waited);
  return answer;
}

// Waits for the answer as a stopped thread. The two scopes tell on_revoke() whether memory may
// leave meanwhile, and whether a hold ends soon. A thread that waits in the midst of a restore is
// told apart: it has begun nothing, so memory may leave for another job's restore. errors:
// kCancelled.
Status Runtime::Impl::wait_stopped(std::uint64_t need, Bytes bytes, bool is_unmovable) {
  const StoppedThreads::Scope stopped(stopped_, is_unmovable);
  const Holds::Stopped stopped_holds(holds_, std::this_thread::get_id());
  const bool is_restoring = moves_.is_restored_by(std::this_thread::get_id());
  if (is_restoring) moves_.wait_for_room(need);
  Status waited = wait_for_answer(need, bytes);
  if (is_restoring) moves_.go_on();
  while (is_restoring && moves_.is_giving())
    changed_.wait(mu_);
  return waited;
}

// Asks for room that is free, and waits only for the answer. The job is not taken for stopped:
// other threads of it may want what the caller has locked, so its memory stays where it is. errors:
// as grow().
Status Runtime::Impl::ask_for_free_room(const alloc::RoomRequest& request) {
  // The client thread is giving memory away, and would read the answer only when all is given.
  if (moves_.is_releasing()) {
    return {StatusCode::kOutOfMemory, "memory of this job is being given to others"};
  }
  const std::uint64_t n = needs_.add(request);
  stopped_.note_thread_at_work();
  const bool is_sent = send(needs_.message(n, link_.address()));
  const Nanos deadline = monotonic_now() + kAtOnce;
  while (is_sent && link_.is_attached() && needs_.is_waiting(n)) {
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos{0}) break;
    changed_.wait_for(mu_, left);
  }
  return needs_.take(n);
}

// Whether the coordinator still answers questions.
bool Runtime::Impl::has_answering_coordinator() {
  const std::uint64_t before = link_.num_explained();
  mu_.unlock();
  static_cast<void>(explain(kAtOnce));
  mu_.lock();
  return link_.num_explained() != before;
}

// Waits for the answer, looking for signals every kSignalCheck. The coordinator has a limit of its
// own, and lets a request wait longer where that helps: while a suspended job has the memory, say.
// So the wait ends without an answer only if the coordinator answers nothing else either. If memory
// was spilled meanwhile, it goes on even then: the memory must be back before the thread goes on.
// errors: kCancelled.
Status Runtime::Impl::wait_for_answer(std::uint64_t need, Bytes bytes) {
  const Nanos start = monotonic_now();
  Nanos deadline = start + link_.memory_wait() + config_.answer_patience;
  Nanos next_line = start + kFirstLine;
  while (needs_.is_waiting(need)) {
    if (!stopped_.is_memory_away() && monotonic_now() >= deadline) {
      if (!has_answering_coordinator()) break;
      deadline = monotonic_now() + config_.answer_patience;
    }
    changed_.wait_for(mu_, kSignalCheck);
    if (!needs_.is_waiting(need)) break;
    if (is_interrupted_unlocked()) {
      return {StatusCode::kCancelled, "the wait for memory was interrupted"};
    }
    const Nanos now = monotonic_now();
    if (now < next_line) continue;
    next_line = now + kNextLine;
    mu_.unlock();
    log::warn("waiting for {:.0f} s for {} of memory: {}", to_seconds(now - start),
              to_string(bytes), explain(seconds(1)));
    mu_.lock();
  }
  return {};
}

}  // namespace gpushare::client
