// The transfer budget on the job's side. While another job computes and nobody waits for this job's
// bytes, copies keep to the rate that the coordinator writes into the page.
//
// Only the client thread keeps to it, and only between two portions. Nothing is on the move then
// and no writer is held up, so no thread of the user ever waits for the rate. A message, a lost
// connection, or another thread that wants to move memory ends the waiting at once.
#include <algorithm>

#include "csrc/base/clock.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/ipc/socket.h"

namespace gpushare::client {
namespace {

// How often the rate is read while this thread waits: the page changes without a message.
constexpr Nanos kRateLook = millis(5);

}  // namespace

// The rate in bytes a second; 0: no limit. A page of a coordinator that is gone sets none, since
// nobody would lift it. Nor does an open lease: then the copies are this job's own.
Bytes Runtime::Impl::transfer_rate() {
  const bool is_heard = link_.is_attached() && page() != nullptr && page()->epoch == link_.epoch();
  if (!is_heard || moves_.has_waiting() || wire::load(*page()).is_open()) return {};
  return Bytes{page()->transfer_rate.load(kRelaxed)};
}

bool Runtime::Impl::is_limited() {
  MutexLock lock(mu_);
  return transfer_rate() > Bytes{0};
}

// How much of `most` may be copied now, or how long to wait. The page says meanwhile that this job
// is held back.
Pace::Turn Runtime::Impl::next_turn(Bytes most) {
  Pace::Turn turn = pace_.next(transfer_rate(), most, monotonic_now());
  turn.wait = std::min(turn.wait, kRateLook);
  say_held_back(turn.wait > Nanos{0});
  return turn;
}

void Runtime::Impl::say_held_back(bool is_held_back) {
  if (page() != nullptr) page()->is_held_back.store(is_held_back ? 1 : 0, kRelaxed);
}

// Waits for its turn, in the midst of a Revoke. A message or the end of the connection needs this
// thread, so then all of `most` may go at once.
Bytes Runtime::Impl::wait_for_turn(Bytes most) {
  while (true) {
    int socket = -1;
    Pace::Turn turn;
    {
      MutexLock lock(mu_);
      turn = next_turn(most);
      socket = link_.connection().fd();
    }
    if (turn.bytes > Bytes{0}) return turn.bytes;
    const Result<bool> is_called = ipc::wait_readable(socket, turn.wait);
    if (thread_.is_stopping() || !is_called.has_value() || *is_called) break;
  }
  MutexLock lock(mu_);
  say_held_back(false);
  return most;
}

}  // namespace gpushare::client
