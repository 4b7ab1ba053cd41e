// The way back of memory that overflows: memory that was refused room and is used in the host tier.
//
// When a lease opens, overflow moves in as far as there is room. While the lease is open the client
// thread asks for more room now and then, and moves overflow in under the running iteration: memory
// stays readable while it moves. On a device where writers cannot be made to wait (a GPU) overflow
// moves in only with a lease, when the device is idle.
//
// What may go wrong: room is denied. Then the client thread asks again after a pause
// (overflow_request.h).
#include <algorithm>
#include <cstdint>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

// The request must have these bytes and would like all: so part of the overflow may come.
constexpr Bytes kMustHave = mib(32);

}  // namespace

// Moves in what there is room for. The lock is let go during the copies. pre: this thread moves
// (start_restoring).
void Runtime::Impl::move_overflow_in() {
  if (!config_.overflow || allocator_.overflow() == Bytes{0}) return;
  mu_.unlock();
  const Result<Bytes> moved = residency_.move_overflow_in(allocator_.overflow());
  mu_.lock();
  note_moved();
  if (moved.has_value()) {
    if (*moved > Bytes{0}) log::info("{} of overflow have room now", to_string(*moved));
  } else {
    log::warn("overflow could not be moved in: {}", moved.error().message());
  }
}

// On the client thread, a few times a second. Takes the answer to the last request, if there is
// one, and asks again after a pause. It never waits: if another thread moves memory now, nothing is
// moved this time.
void Runtime::Impl::watch_overflow() {
  if (!config_.overflow || !allocator_.can_move_in_use()) return;
  MutexLock lock(mu_);
  if (const auto need = overflow_request_.need(); need.has_value()) {
    if (needs_.is_waiting(*need)) return;
    const Status answer = needs_.take(*need);
    overflow_request_.close(answer.ok(), monotonic_now());
    if (answer.ok() && start_restoring(monotonic_now())) {
      move_overflow_in();
      stop_moving();
    }
  }
  const Bytes overflow = allocator_.overflow();
  const bool has_lease = page() != nullptr && wire::load(*page()).is_open();
  const bool may_ask = overflow > Bytes{0} && has_lease && !needs_.has_waiting() &&
                       overflow_request_.is_due(monotonic_now());
  if (!may_ask) return;
  const Bytes bytes = std::min(overflow, kMustHave);
  const std::uint64_t n = needs_.add({.bytes = bytes, .like = overflow, .room = allocator_.room()});
  overflow_request_.open(n);
  send(needs_.message(n, link_.address()));
}

}  // namespace gpushare::client
