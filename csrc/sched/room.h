// Whose room is asked for when somebody needs more than is free: pure planning.
//
// Parked jobs give first, the furthest next use (by the policy's order) first, and only the
// deficit. Then jobs that are not parked: they give free memory at most, and nothing for a moment
// after a Need of theirs was met. Last, jobs that wait for room themselves. Nobody is asked twice
// at a time, nor again after it gave less than asked, until something about it changed; and nobody
// for more than the host tier has room for (host_tier.h).
#pragma once

#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/table.h"

namespace gpushare::sched {

struct Giving {
  JobId job;
  Bytes bytes;
};

// What is free, and what will be once the Revokes that are out are answered. Claims take from it in
// their order, so that two do not count on the same bytes.
struct RoomPool {
  Bytes free;      // negative after a restart with more in use than there is
  Bytes expected;  // of Revokes that are not overdue

  // pre: bytes <= free + expected.
  void take(Bytes bytes);
};
RoomPool room_pool(const Table& table, const Device& device, Nanos now);

// Its main thread waits in the gate: all its memory may be moved.
bool is_parked(const Device& device, const Job& job);
// The room the job's next iteration needs, as far as it may have it.
Bytes needed_room(const Job& job, Bytes capacity);

// Who gives `deficit` bytes to `claimant`; less in sum if there is no more to ask for.
std::vector<Giving> plan_revokes(
    const Table& table, const Device& device, JobId claimant, Bytes deficit, Nanos now);
// A job that holds room and may give it later, by parking, leaving, or answering at last; 0: none.
JobId later_giver(const Table& table, const Device& device, JobId claimant);

// "device cpu (2.0 GiB): job 3 u1001/gpt 1.1 GiB, pid 42 0.5 GiB (unmanaged), free 0.1 GiB": for
// texts about memory. Without `except`.
std::string ledger_text(const Table& table, const Device& device, JobId except);

}  // namespace gpushare::sched
