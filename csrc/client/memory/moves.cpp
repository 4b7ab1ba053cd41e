// The transitions of the drawing in moves.h. wait_for_room() and go_on() are total: in the second
// of two nested waits the restore waits already, and after it the first wait finds the restore at
// work.
#include "csrc/client/memory/moves.h"

#include "csrc/base/check.h"

namespace gpushare::client {

void Moves::start_release() {
  GS_DCHECK(is_still(), "state {}", static_cast<int>(state_));
  state_ = State::kReleasing;
}

void Moves::start_restore(Thread thread) {
  GS_DCHECK(is_still(), "state {}", static_cast<int>(state_));
  state_ = State::kRestoring;
  thread_ = thread;
}

void Moves::wait_for_room(std::uint64_t need) {
  need_ = need;
  if (state_ == State::kRestoring) state_ = State::kRestoreWaits;
}

void Moves::go_on() {
  if (state_ == State::kRestoreWaits) state_ = State::kRestoring;
  if (state_ == State::kGiving) state_ = State::kGivingLast;
}

void Moves::start_giving() {
  GS_DCHECK(is_restore_waiting(), "state {}", static_cast<int>(state_));
  state_ = State::kGiving;
}

void Moves::stop_giving() {
  GS_DCHECK(is_giving(), "state {}", static_cast<int>(state_));
  state_ = state_ == State::kGiving ? State::kRestoreWaits : State::kRestoring;
}

}  // namespace gpushare::client
