// Interruptions: a lease that is given back inside an iteration, at a safepoint between two blocks
// of the model, for a job that cannot wait for the iteration's end.
//
// Who may interrupt: a guaranteed job an opportunistic one, under every policy; under those that
// meet deadlines a job that has one and goes before the holder at its boundary: if it would be late
// after that, or has a deadline shorter than the holder's iterations. Such a job is also granted a
// free lane before the first in line, whom it would interrupt at once. The interrupted job is not
// parked: its activations are live, so nothing of it is moved or asked for
// (PlaceInLine::is_inside), and the slots that it uses of its lane are its own meanwhile. So only a
// job that fits beside it as it is may interrupt it; else the lease is asked for at the boundary.
//
// While a job of a lane is interrupted, only urgent jobs go before it, and nobody else is
// interrupted there. It runs at least one block between two interruptions; once it has waited for
// max_wait in its iteration, or before it, it is not interrupted until its boundary; nor once it
// has stopped and nobody could have the lane after all.
//
// Not under `pack`: who runs beside whom is decided for iterations that end. Nor in gangs, whose
// jobs wait for each other inside them.
//
// The time of an interruption is in no lease, so it is charged to nobody, and the job does not
// count it as a part of its iteration.
#pragma once

#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Whether a job of its device is of those who may interrupt it, waiting or not.
bool has_interrupter(const Table& table, const Job& job);

// When the holder is to be asked for its lease inside its iteration, and for whom; how long it has
// waited in that is not looked at.
struct Interruption {
  JobId job;
  Nanos at;  // perhaps in the future
};
// The waiting job for which the holder is interrupted first. Nothing: no waiting job may interrupt
// it. pre: the lane is held.
std::optional<Interruption> interruption(const Table& table, const Lane& lane, Nanos now);

// The job of the lane that waits inside an iteration, or is about to since its lease has just ended
// there; 0: none, or it owes an answer for too long.
JobId interrupted_in(const Table& table, const Lane& lane, Nanos now);
// The waiting job that goes before the interrupted job now. 0: there is none.
JobId first_urgent(
    const Table& table, const Lane& lane, const Job& interrupted, Nanos now, const RoomPool& pool);
// A waiting job that has its room, and would interrupt the first in line as soon as that had the
// lane; 0: there is none.
JobId urgent_before(
    const Table& table, const Lane& lane, const Job& first, Nanos now, const RoomPool& pool);
// How long an interrupted job whose lease has just ended is waited for: it has no more to do than
// to say so.
inline constexpr Nanos kComesBack = millis(10);
// The interrupted job of the lane that goes on after one iteration of the holder, which had to meet
// a deadline; 0: none. pre: the lane is held.
JobId goes_on_next(const Table& table, const Lane& lane, Nanos now);
// When the holder is to be asked for its lease since an interrupted job has waited long enough.
std::optional<Interruption> patience_of_interrupted(const Table& table,
                                                    const Lane& lane,
                                                    Nanos now);

// Whether its page is believed that says so: it was asked for its lease there, or may have been by
// another coordinator.
bool may_be_inside(const Device& device, const Job& job);
// The job has given its lease up inside an iteration. No-op if that is known.
void begin_inside(Step& step, Job& job);
// The job is granted its next lease and goes on inside the iteration, or the iteration is broken
// off. No-op for a job that is not inside.
void end_inside(Step& step, Job& job, bool goes_on);

}  // namespace gpushare::sched
