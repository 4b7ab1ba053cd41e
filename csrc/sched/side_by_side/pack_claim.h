// Under `pack`, the claim of a job that must not wait any longer: nobody starves.
//
// The job of a claim may not run beside the holders, so it would wait as long as they have work.
// Once they have had as long as a quantum, the claim is due: those in the way are asked for their
// leases, and nobody else begins until the job has one. A job that was passed over for three times
// max_wait can have the claim too, since its user may have what is his by jobs that pay beside
// others. A guaranteed job waits for guaranteed ones only.
#pragma once

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Finds who has the claim now, and when it is due. Called once a step, before anybody is granted a
// lease.
void settle_claim(Step& step);
// The waiting job whose claim is due: it gets a lease before anybody else. nullptr if there is
// none.
const Job* first_by_claim(const Table& table, Nanos now);

}  // namespace gpushare::sched
