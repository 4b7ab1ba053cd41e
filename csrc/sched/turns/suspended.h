// Jobs whose process is suspended: by Ctrl-Z, SIGSTOP, a debugger, or the pause of its container.
//
// Such a process answers nothing, so its memory cannot move, and nobody waits for its boundary: it
// keeps the lease that it has, and its lane with it, and another lane is opened for the others
// (lane_moves.h). When it goes on it ends its iteration beside whoever runs then. Without a lease
// it stands aside, as one that is paused does. A gang of which one is suspended is so as a whole,
// since the others wait for that one.
//
// Others wait for memory that they lack because of it, however long that takes: nobody is refused
// as much as suspended jobs hold (patience_ends in room.h). A job that needs more than what
// suspended jobs leave of the device is passed over in line.
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// The job's process is suspended now, or goes on.
void set_suspended(Step& step, Job& job, bool is_suspended);
// Whether the job's process is suspended, or that of another job of its gang.
bool is_suspended(const Table& table, const Job& job);
// Brings the leases up to date: the time in which their holders are suspended is not charged.
void settle_suspended(Step& step);

// The room that suspended jobs hold.
Bytes held_by_suspended(const Table& table);
// Whether the job would have its room if all but suspended jobs gave theirs.
bool fits_beside_suspended(const Table& table, const Job& job);

// For people, what the job's suspension means and how it ends: "job 3 (gpt) is suspended ...".
std::string suspended_text(const Table& table, const Job& job, Nanos now);
// "; held by suspended jobs: 3 (gpt) 1.2 GiB", for who lacks room; "" if there are none.
std::string held_by_suspended_text(const Table& table);

}  // namespace gpushare::sched
