// Keeps the ranks of a gang in step.
//
// A rank parts from the others at a boundary only: it closes its lease there, or lacks room for its
// next step. The others are at the same boundary, or in the gap after it. Each of them counts its
// boundaries up to now, and then acts for itself: it ends its lease too, or waits inside its next
// step.
#include "csrc/sim/run/sim_gang.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "csrc/sim/run/sim_job.h"

namespace gpushare::sim {

SimGang::SimGang(std::size_t number, bool has_rows)
    : name_(fmt::format("gang{}", number)), has_rows_(has_rows) {}

double SimGang::slowdown() const {
  double slowest = 0;
  for (const SimJob& rank : ranks_)
    slowest = std::max(slowest, rank.own_slowdown());
  return slowest;
}

// The flag is set before the ranks begin: each of them asks for it when it plans its next event.
void SimGang::note_ready() {
  if (++num_ready_ < ranks_.size()) return;
  num_ready_ = 0;
  is_stepping_ = true;
  for (SimJob& rank : ranks_)
    rank.begin_step();
}

// The flag is cleared first: a rank that goes on may call this again, which must then do nothing.
void SimGang::part() {
  if (!std::exchange(is_stepping_, false)) return;
  for (SimJob& rank : ranks_)
    rank.go_on();
}

void SimGang::retime() {
  for (SimJob& rank : ranks_)
    rank.retime();
}

// Each rank that ends calls this again. Ranks that have ended are left alone, so the calls stop.
void SimGang::deny() {
  for (SimJob& rank : ranks_)
    rank.deny();
}

}  // namespace gpushare::sim
