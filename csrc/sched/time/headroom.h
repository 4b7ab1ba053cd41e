// Under policies that meet deadlines, how long a holder may go on before somebody's deadline needs
// its lease.
//
// Not sooner: whoever is in time anyhow does not cut a quantum short, which costs a switch. What an
// iteration of the two takes is what it took so far, and kDeadlineSafety times that.
#pragma once

#include <cstddef>
#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

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

}  // namespace gpushare::sched
