// Under `pack`, the claim of a job that must not wait any longer: nobody starves.
//
// The job of a claim may not run beside the holders, so it would wait as long as they have work.
// Once they have had as long as a quantum, the claim is due: those in the way are asked for their
// leases, and nobody else begins until the job has one. A job that was passed over for three times
// max_wait can have the claim too: its user may have what is his by jobs that pay beside others, or
// a better class may never leave the device. A guaranteed job waits for guaranteed ones only.
#pragma once

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Finds who has the claim now, and when it is due. Called once a step, before anybody is granted a
// lease.
void settle_claim(Step& step);
// Whether the job, which has the claim, goes before jobs of a better class, as nothing else would
// end its wait. It is given a turn then (class_floor.h): they would ask for the lane at once.
bool goes_before_its_class(const Table& table, const Job& job, Nanos now);
// The waiting job whose claim is due: it gets a lease before anybody else. nullptr if there is
// none.
const Job* first_by_claim(const Table& table, Nanos now);

}  // namespace gpushare::sched
