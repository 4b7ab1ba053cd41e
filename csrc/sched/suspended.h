// Jobs whose process is suspended: by Ctrl-Z, SIGSTOP or a debugger.
//
// Such a process answers nothing, so its memory cannot move, and nobody waits for its boundary: it
// keeps the lease that it has, and its lane with it, and another lane is opened for the others
// (lane_moves.h). When it goes on it ends its iteration beside whoever runs then. Without a lease
// it stands aside, as one that is paused does. A gang of which one is suspended is so as a whole,
// since the others wait for that one.
//
// What others lack because of it they wait for, however long that takes: nobody is refused memory
// while a suspended job holds some (patience_ends in room.h).
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/step.h"

namespace gpushare::sched {

// The job's process is suspended now, or goes on.
void set_suspended(Step& step, Job& job, bool is_suspended);
// It, or another of its gang.
bool is_suspended(const Table& table, const Device& device, const Job& job);
// Brings the leases up to date: the time in which their holders are suspended is not charged.
void settle_suspended(Step& step, Device& device);
// That time is over. To be called before a lease is charged for.
void end_suspension(Lane& lane, Nanos now);

// Whether there is room for it beside what suspended jobs hold, if all others gave theirs.
bool fits_beside_suspended(const Device& device, const Job& job, Nanos now);

// What it means for others, and how it ends: "job 3 (gpt) is suspended ...".
std::string suspended_text(const Table& table, const Device& device, const Job& job, Nanos now);
// "; held by suspended jobs: 3 (gpt) 1.2 GiB", for who lacks room; "" if there are none.
std::string held_by_suspended_text(const Table& table, const Device& device);

}  // namespace gpushare::sched
