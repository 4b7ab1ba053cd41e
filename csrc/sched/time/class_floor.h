// A part of each lane's time (class_floor, 5 %) for every class below the one that has it, and of
// each class' time for its overdue jobs: a class goes before those below it, and starves none, nor
// do short jobs starve a long one.
//
// While jobs of a class wait and a job of a higher class has the lane, their class earns that part
// of the time. The class spends the time for which one of its jobs has the lane, also in the gaps
// of others. A class is due once it has earned a turn, which is a second, or more where changing
// hands is slow. The holder is then asked for its lease at the next boundary. The first in line of
// the class gets the lease, and keeps it until what was earned is spent, whoever waits. A class of
// which no job waits earns nothing.
//
// The overdue jobs of a class earn and spend in the same way, but of the time that their class has.
// The policy says from when on a job that waits is overdue (OrderKey::overdue_at); under most no
// job ever is. The one that was overdue first has the turn.
//
// What it does not do: under `pack`, where who runs is a matter of all lanes, no class earns time.
// A job that was passed over for long is given a turn instead (pack_claim.h). And an opportunistic
// job keeps to what a guaranteed one of the same user leaves under the policy `priority`, which is
// what the two classes are for (harvest.h).
#pragma once

#include <optional>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"
#include "csrc/wire/priority.h"

namespace gpushare::sched {

// Earns and spends. At the beginning of each step, before users are charged (shares.h).
void settle_floors(Table& table, Nanos now);

// Whether a waiter may have its class' turn after the last holder. False for an opportunistic job
// after a guaranteed one of its own user, as above.
bool may_have_floor(const Table& table, const Lane& lane, const Job& waiter);
// The class whose turn it is; nothing: the classes go by their order.
std::optional<wire::Priority> class_due(const Table& table, const Lane& lane);
// When a class below the holder's will be due, if it keeps the lane; now, if one is. pre: the lane
// is held.
std::optional<Nanos> class_due_at(const Table& table, const Lane& lane, Nanos now);
// The job of the class that is overdue for the longest time, if its overdue jobs are due; 0: they
// are not.
JobId overdue_job(const Table& table, const Lane& lane, wire::Priority priority, Nanos now);
// A job of the holder's class that waits, and when such a turn will be its own if the holder keeps
// the lane. Nothing: no job is ever overdue, or no time is theirs. pre: the lane is held.
struct OverdueTurn {
  Nanos at;
  JobId job;
};
std::optional<OverdueTurn> overdue_turn(const Table& table, const Lane& lane, Nanos now);
// What kind of turn the lane's next job has, which is about to be granted its lease.
FloorTurn floor_turn_of(const Table& table, const Lane& lane, const Job& job, Nanos now);
// Until when nobody goes before the holder, which has its class' turn, or that of an overdue job;
// nothing: it has none. pre: the lane is held.
std::optional<Nanos> floor_turn_ends(const Table& table, const Lane& lane, Nanos now);
// Gives the job, which waits for the lane, a turn that its class has not earned.
void give_turn(const Table& table, Lane& lane, const Job& job);
// "normal jobs are due: 5 % of the time is theirs".
std::string floor_text(const Table& table, wire::Priority priority);
// "3 (gpt) is overdue: it has waited for 90.0 s and runs for 8.0 s".
std::string overdue_text(const Job& job, Nanos now);

}  // namespace gpushare::sched
