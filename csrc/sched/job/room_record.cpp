// When a job that could not give is asked again: at once when something changed, after a short
// pause where what is in the way will pass by itself, and a few times only where that is a disk.
#include "csrc/sched/job/room_record.h"

#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

// A thread that holds memory for one operation is done long before; one that writes a checkpoint is
// asked often enough.
constexpr Nanos kHoldPause = millis(20);
// A disk may be full, or a file limit low, for some seconds only. Other jobs wait so long before
// one of them is out of memory; a disk that stays full must not keep that error for long.
constexpr Nanos kPlacePause = seconds(1);
constexpr int kMostPlaceTries = 5;

}  // namespace

void RoomRecord::note_change() {
  cannot_give = false;
  asked_again_at.reset();
  unplaced = Bytes{};
  short_reason.clear();
  ++num_changes;
}

void RoomRecord::end_pause() {
  if (unplaced > Bytes{0}) ++num_place_tries;
  note_change();
}

void RoomRecord::note_short(const PendingRevoke& asked, const wire::Released& released, Nanos now) {
  if (released.spilled > Bytes{0}) num_place_tries = 0;
  if (asked.num_changes != num_changes) return;
  cannot_give = true;
  if (released.held) {
    asked_again_at = now + kHoldPause;
  } else if (released.unplaced > Bytes{0} && num_place_tries < kMostPlaceTries) {
    asked_again_at = now + kPlacePause;
  }
  unplaced = released.unplaced;
  short_reason = released.reason;
}

}  // namespace gpushare::sched
