// Times the iterations of jobs under `pack`, alone and beside each other, from their pages.
//
// What counts is what was run between two looks at a page while the same jobs had leases; not the
// iteration that was under way when they came together, nor a job's first ones.
#pragma once

#include "csrc/sched/table/step.h"

namespace gpushare::sched {

// After the job's page was seen. `is_end`: its lease is over.
void time_iterations(Step& step, Job& job, bool is_end);

}  // namespace gpushare::sched
