// A rank of a gang on several devices, as the machine of one device sees it: a job that begins
// iterations only while its gang's row is open (csrc/host/gang_rows.h).
//
// Which problem it solves: the machine knows nothing of other devices, so it is told from above
// which of its jobs may begin, and until which step. Until then the job waits with its gang and
// stands in no line. With an open row it goes before all others in its lane, and no rule of time
// asks it for its lease: at that step it ends its lease by itself.
//
// What it does not do: it opens no row, and knows no other rank than those on its device.
#pragma once

#include <optional>

#include "csrc/base/units.h"
#include "csrc/sched/job/job.h"
#include "csrc/sched/table/step.h"
#include "csrc/sched/time/singles.h"

namespace gpushare::sched {

// Whether the job's row is open, and not at its end for this job.
inline bool is_in_row(const Job& job) {
  return job.row.has_value() && job.usage.gang_steps < job.row->until;
}
// It may begin no iteration until its row is opened.
inline bool is_outside_row(const Job& job) { return job.row.has_value() && !is_in_row(job); }

// From now on. Nothing: a job as any other.
void set_row(Step& step, Job& job, std::optional<GangRow> row);
// The first in the lane's line whose row is open; 0: none.
JobId first_in_row(const Table& table, const Lane& lane);
// Whether a rank here waits for its gang's row.
bool is_row_wanted(const Table& table);
// The jobs of the device without a row.
Singles singles_on(const Table& table, Nanos now);

}  // namespace gpushare::sched
