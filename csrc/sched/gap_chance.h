// Gaps between a holder's iterations, lent to those who wait (Salus, AntMan).
//
// At each boundary the gap that is expected stands against what it costs to lend it: changing hands
// to the next job and back, as both were measured, microseconds where all memory is there. If the
// gap is worth more, the lease is asked for at once, so that it passes on at the boundary itself,
// without a poll.
//
// Who lends loses nothing by it. Either the next job's iteration fits into the usual gap; or it is
// the next job's turn at that boundary, by the policy's order, and its iteration is not much longer
// where that order does not count time. And who has lent has the lane again at the borrower's next
// boundary, if it goes before it then: the borrower's quantum ends, as soon as what its own switch
// cost has paid off.
//
// Not under `pack`, where jobs run side by side instead; nor for a guaranteed job before
// opportunistic ones (harvest.h).
#pragma once

#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/table.h"

namespace gpushare::sched {

struct GapChance {
  JobId next;
  Nanos gap;   // expected of the holder's, what is left of it
  Nanos cost;  // to change hands twice
};

// Nothing: the gap at the holder's next boundary is not lent, or it is not known now where the
// holder is. pre: the lane is held.
std::optional<GapChance> gap_chance(const Table& table,
                                    const Device& device,
                                    const Lane& lane,
                                    Nanos now);

// A gap that is longer than this is none of the usual ones: its rest is anybody's.
Nanos usual_gap_ends(const Device& device, const Job& holder);

// Of those who have lent the lane and are back, who goes before the holder at its next boundary.
struct LenderBack {
  JobId job;
  Nanos at;  // when the holder is to be asked
};
std::optional<LenderBack> lender_back(const Table& table,
                                      const Device& device,
                                      const Lane& lane,
                                      Nanos now);

// The holder was asked for its gap, and its lease has ended.
void note_lent(Lane& lane);
// Its lease begins: what it has lent is back.
void note_taken_back(Lane& lane, JobId job);

}  // namespace gpushare::sched
