// Gaps between a holder's iterations, lent to those who wait (Salus, AntMan).
//
// At each boundary the gap that is expected stands against what it costs to lend it: changing hands
// to the next job and back, as both were measured, microseconds where all memory is there. If the
// gap is worth more, the lease is asked for at once, so that it passes on at the boundary itself,
// without a poll.
//
// A gap is lent in two cases: the next job's iteration fits into it, so that the lender is late by
// no more than `switch_loss` of its time; or it is the next job's turn at that boundary by the
// policy's order. (Where that order counts no time, only if the next job's iteration is no longer
// than the lender's iteration and gap together.) When the lender comes back, the borrower is asked
// for the lease if the lender goes before it, as soon as the time that the borrower's own switch
// took has paid off.
//
// Not under `pack`, where jobs run side by side instead; nor for a guaranteed job before
// opportunistic ones (harvest.h).
#pragma once

#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

struct GapChance {
  JobId next;
  Nanos gap;   // expected of the holder's, what is left of it
  Nanos cost;  // to change hands twice
};

// The job to which the gap at the next boundary of the holder is lent. Nothing: it is not lent, or
// it is not known now where the holder is. pre: the lane is held.
std::optional<GapChance> gap_chance(const Table& table, const Lane& lane, Nanos now);

// A gap that is longer than this is none of the usual ones: its rest is anybody's.
Nanos usual_gap_ends(const Device& device, const Job& holder);

// How long the holder is in its gap already; 0: it computes; nothing: what is known is old. pre:
// the lane is held.
std::optional<Nanos> time_in_gap(const Lane& lane, const Job& holder, Nanos now);

// A job that has lent the lane, waits for it again, and goes before the holder at its next
// boundary.
struct LenderBack {
  JobId job;
  Nanos at;  // when the holder is to be asked
};
// pre: the lane is held.
std::optional<LenderBack> lender_back(const Table& table, const Lane& lane, Nanos now);

// The lease of the lane ends: if the holder was asked for its gap, it is a lender until its next
// lease begins (Lane::begin_lease).
void note_lent(Lane& lane);

}  // namespace gpushare::sched
