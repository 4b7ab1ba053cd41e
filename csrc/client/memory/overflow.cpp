// The way back of what overflows: memory that was refused room and is used in the host tier.
//
// What room there is, it gets when a lease opens. While a lease is open the client thread asks for
// more now and then, and moves it in under the running iteration: spilled and overflowing memory
// alike stay readable while they move. Where writers do not wait (a GPU) it comes in with a lease
// only, when the device is idle.
#include <algorithm>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

constexpr Nanos kFirstPause = seconds(1);
constexpr Nanos kLongestPause = seconds(60);
// Few bytes that must be had and more that are welcome: so part of it may come.
constexpr Bytes kMustHave = mib(32);

}  // namespace

// pre: this thread moves (start_moving).
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

// On the client thread, some times a second.
void Runtime::Impl::watch_overflow() {
  if (!config_.overflow || !allocator_.can_move_in_use()) return;
  MutexLock lock(mu_);
  if (overflow_need_.has_value()) {
    if (needs_.is_waiting(*overflow_need_)) return;
    const Status answer = needs_.take(*std::exchange(overflow_need_, std::nullopt));
    overflow_pause_ = answer.ok() ? kFirstPause : std::min(overflow_pause_ * 2, kLongestPause);
    overflow_asked_at_ = monotonic_now();
    if (answer.ok() && start_moving(Moving::kRestoring, monotonic_now())) {
      move_overflow_in();
      stop_moving();
    }
  }
  const Bytes overflow = allocator_.overflow();
  const bool has_lease = page() != nullptr && wire::load(*page()).is_open();
  const bool may_ask = overflow > Bytes{0} && has_lease && !needs_.has_waiting() &&
                       monotonic_now() - overflow_asked_at_ >= overflow_pause_;
  if (!may_ask) return;
  const Bytes bytes = std::min(overflow, kMustHave);
  overflow_need_ = needs_.add(bytes, overflow);
  send(wire::Need{.of = address_, .n = *overflow_need_, .bytes = bytes, .like = overflow});
}

}  // namespace gpushare::client
