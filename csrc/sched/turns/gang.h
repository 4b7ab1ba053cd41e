// Gangs: jobs that compute together, as the ranks of a distributed program. Those on one device
// hold one lease together and count as one job.
//
// Which problem it solves: inside an iteration a rank waits for the others (all-reduce). If one of
// them had the lease and another had to wait for it, neither could go on.
//
// How: of those that want a lease the one with the lowest number stands in line for all, and is
// granted the lane's lease. The others are granted theirs along with it (Lease::along), as they
// come and their room is settled. The lane's lease ends when the last of them has closed. Asked
// back, each of them closes at its next boundary. Some may have begun an iteration by then that
// another one has not begun: that one is let in for one more, once, since the others cannot end
// theirs without it. Numbers of iterations mislead where ranks do different things (one of them
// evaluates, alone). So a rank is let in too when it has waited for longer than iterations last,
// while another is inside one.
//
// A gang stands in line when all its jobs want a lease, or one of them has waited for a moment, or
// nobody else waits for the lane. Its jobs give each other only room that they do not use, and
// while one of them has a lease they give nothing to anybody else. What is changed of one of them
// is changed of all (change.h).
//
// What it does not do: ranks on several devices. Each device knows only its own; when those may run
// it is told (row.h).
#pragma once

#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/plans/packing.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

inline bool is_in_gang(const Job& job) { return !job.who.of.gang.empty(); }
// Of one gang of one user, on one device. False of a job and itself where it has none.
bool are_together(const Job& job, const Job& other);
// All of its gang that take turns, the job too; empty if it is of none, or takes no turns.
JobSet gang_of(const Device& device, const Job& job);
// Whether a job of its gang has a lease, or is about to be let in.
bool is_gang_running(const Table& table, const Job& job);

// It takes turns from now on; no more. No-op without a gang.
void join_gang(Device& device, const Job& job);
void leave_gang(Device& device, const Job& job);

// Puts a job of each gang in line for the others, where it is time for that.
void settle_gangs(Step& step);
// Remembers how far the job was when it was granted its first lease there.
void note_begun(Lease& lease, const Job& job);
// The lane is asked back: the others too.
void ask_along(Step& step, const Lane& lane);
// A job that has said Hello holds the lane: others of its gang wait along with it.
void wait_along(Step& step, const Job& holder);
// It takes turns from now on, as its gang does: paused with it, asked for its lease with it.
void follow_gang(Step& step, Job& job);
// The job, which holds the lane, has closed: the others keep it. pre: others hold it too.
void leave_to_others(Lane& lane, const Job& job);
// A job of the gang said that it holds a lease, as another one does. False: none does.
bool adopt_along(Step& step, Job& job, Term term);

// For whom it waits. pre: PlaceInLine::waits_in_gang.
std::string gang_text(const Table& table, const Job& job);

}  // namespace gpushare::sched
