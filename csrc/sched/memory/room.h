// The device's room as it is now: what is free or on its way, who is parked, what a job needs.
//
// Who gives room to whom is planned in memory_plan.h.
#pragma once

#include <algorithm>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// The bytes that are free, and those that will be free once the Revokes that are out are answered.
// Claims take from it in their order, so that no two count on the same bytes.
struct RoomPool {
  Bytes free;      // negative after a restart with more in use than there is
  Bytes expected;  // of Revokes that are not overdue

  // The bytes that claims may still take.
  [[nodiscard]] Bytes usable() const { return std::max(free + expected, Bytes{0}); }
  // pre: bytes <= free + expected.
  void take(Bytes bytes);
};
RoomPool room_pool(const Table& table, Nanos now);

// All its memory may be moved: its main thread waits in the gate, not inside an iteration, or it is
// in a gap in which it allows that.
bool is_parked(const Device& device, const Job& job);
// The room the job's next iteration needs, as far as it may have it.
Bytes needed_room(const Job& job, Bytes capacity);

// Room that it may have beyond what it has: within the device and its own limit.
Bytes most_more(const Device& device, const Job& job);
// By how much the job's room has to rise to what it needs, slots of its lane included.
Bytes growth_of(const Device& device, const Lane& lane, const Job& job);
// How many bytes must become free before that; and the device must not be beyond its capacity.
Bytes deficit_of(const Device& device, const Lane& lane, const Job& job, const RoomPool& pool);
// The part of the needed room that the job uses late in its iteration, so that it can begin without
// it (optimizer state).
Bytes late_room(const Job& job);

// Until when who lacks so much room since then waits for it: memory_wait, but for the time in which
// suspended jobs hold as much.
Nanos patience_ends(const Table& table, Nanos since, Bytes lacking);
// The part of the request that is not free.
Bytes lacking_for(const Device& device, const WaitingNeed& need);

// "device cpu (2.0 GiB): job 3 u1001/gpt 1.1 GiB, pid 42 0.5 GiB (unmanaged), free 0.1 GiB": for
// texts about memory. Without `except`.
std::string ledger_text(const Table& table, JobId except);

}  // namespace gpushare::sched
