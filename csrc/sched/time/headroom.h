// Under policies that meet deadlines, how long a holder may go on before somebody's deadline needs
// its lease.
//
// Not sooner: whoever is in time anyhow does not cut a quantum short, which costs a switch. The
// iterations of both are taken to last kDeadlineSafety times as long as they usually do.
#pragma once

#include <cstddef>
#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// Iterations vary: a job that is to be in time begins so many of its usual iterations before its
// deadline.
inline constexpr double kDeadlineSafety = 1.5;
// How many of the waiting jobs are looked at, from the first on, so that a step with many of them
// does not take long. Under `deadline` those behind them are due later.
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
