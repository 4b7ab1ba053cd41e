// Under policies that meet deadlines, how long a holder may go on before somebody's deadline needs
// its lease.
//
// Not sooner: whoever is in time anyhow does not cut a quantum short, which costs a switch. What an
// iteration of the two takes is what it took so far, and kDeadlineSafety times that.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Iterations vary: a job that is to be in time begins so many of its usual iterations before its
// deadline.
inline constexpr double kDeadlineSafety = 1.5;
// How many of the waiting jobs are looked at: those behind them in the line have later deadlines.
inline constexpr std::size_t kMostLooked = 16;

struct Headroom {
  JobId job;
  Nanos ends;  // then the holder is to be asked; perhaps in the past
};

// For deadline_rule.cpp: the headroom that ends first, of the first jobs in line that have a
// deadline and go before the holder.
// pre: the lane is held.
std::optional<Headroom> headroom(const Table& table, const Lane& lane, Nanos now);

// Decides which deadlines count, where they ask for more than all the time: one that does not fit
// beside those that come first counts as none, so that those are met. Otherwise all would be late.
void shed_deadlines(Step& step);
// Why the job's deadline counts for nothing: the policy keeps to none, and which do; or there is no
// time for it. "" if it counts, or the job has none.
std::string deadline_note(const Device& device, const Job& job);

}  // namespace gpushare::sched
