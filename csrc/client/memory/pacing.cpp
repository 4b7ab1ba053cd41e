// The transfer budget on this side: what this process copies while another job computes, and while
// nobody waits for it, keeps to the rate that the coordinator writes into the page.
//
// Only the client thread keeps to it, and only between two portions, when nothing is on the move
// and no writer held up: it never makes a thread of the user wait.
#include <algorithm>

#include "csrc/base/clock.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/ipc/socket.h"

namespace gpushare::client {
namespace {

// The page changes silently.
constexpr Nanos kRateLook = millis(5);

}  // namespace

// Bytes a second; 0: no limit. A coordinator that is gone lifts none, and a new one knows nothing
// of the old page.
Bytes Runtime::Impl::transfer_rate() {
  const bool is_heard = link_ == Link::kAttached && page() != nullptr && page()->epoch == epoch_;
  if (!is_heard || num_waiting_to_move_ > 0 || wire::load(*page()).is_open()) return {};
  return Bytes{page()->transfer_rate.load(kRelaxed)};
}

bool Runtime::Impl::is_limited() {
  MutexLock lock(mu_);
  return transfer_rate() > Bytes{0};
}

// What of `most` may be copied now.
Pace::Turn Runtime::Impl::next_turn(Bytes most) {
  Pace::Turn turn = pace_.next(transfer_rate(), most, monotonic_now());
  turn.wait = std::min(turn.wait, kRateLook);
  say_held_back(turn.wait > Nanos{0});
  return turn;
}

void Runtime::Impl::say_held_back(bool is_held_back) {
  if (page() != nullptr) page()->is_held_back.store(is_held_back ? 1 : 0, kRelaxed);
}

// The same, for a Revoke: waits for its turn. A message, or the end of the connection, cannot wait
// for this thread: then all of it may go.
Bytes Runtime::Impl::wait_for_turn(Bytes most) {
  while (true) {
    int socket = -1;
    Pace::Turn turn;
    {
      MutexLock lock(mu_);
      turn = next_turn(most);
      socket = connection_.fd();
    }
    if (turn.bytes > Bytes{0}) return turn.bytes;
    const Result<bool> is_called = ipc::wait_readable(socket, turn.wait);
    // acquire; pairs with the release in stop().
    const bool is_stopping = is_stopping_.load(std::memory_order_acquire);
    if (is_stopping || !is_called.has_value() || *is_called) break;
  }
  MutexLock lock(mu_);
  say_held_back(false);
  return most;
}

}  // namespace gpushare::client
