// The transfer budget: bytes that move while a job computes, and that nobody waits for, take no
// more than so much of the memory bus. As soon as somebody waits for bytes, all go as fast as they
// can.
//
// So moves what is restored ahead of a lease while the lane is held, and what is spilled for a
// limit, or for a job that was served from elsewhere meanwhile. A job cannot tell who waits: its
// page says the rate.
#pragma once

#include "csrc/base/units.h"
#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// How fast the device's jobs without a lease may copy from now on. Patience with one that was asked
// for room begins when it is no longer held back. Before anybody counts on that room, and again
// when all are served.
void settle_transfer_rate(Step& step);
// Bytes a second that the job may copy, as settled last: a share of the budget where several jobs
// have bytes to move; 0: as many as it can.
Bytes transfer_rate(const Device& device, const Job& job);

}  // namespace gpushare::sched
