// The transfer budget: bytes that move while a job computes, and that nobody waits for, take no
// more than so much of the memory bus. As soon as somebody waits for bytes, all go as fast as they
// can.
//
// So moves what is restored ahead of a lease while the lane is held, and what is spilled for a
// limit, or for a job that was served from elsewhere meanwhile. A job cannot tell who waits: its
// page says the rate.
#pragma once

#include "csrc/base/units.h"
#include "csrc/sched/step.h"

namespace gpushare::sched {

// Bytes a second that the job may copy now, a share of the budget where several jobs have bytes to
// move; 0: as many as it can.
Bytes transfer_rate(const Table& table, const Job& job);
// Patience with a job that was asked for room begins when it is no longer held back. Before anybody
// counts on that room, and again when all are served.
void note_held_back(Step& step, const Device& device);

}  // namespace gpushare::sched
