// Which cores of a CPU the jobs that run at the same time keep to: each an equal part, so that they
// do not take turns on one core while another is idle. A job that runs alone has all. Whether its
// threads fit there, and may be fewer, is the job's to say (client/cpu/cpu_share.h); under `pack`
// what it comes to is found by trial (packing.h).
#pragma once

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// Tells the holders theirs, where it has changed. After all leases were granted.
void share_cores(Step& step);

}  // namespace gpushare::sched
