// A job that comes to its line is first lifted to the virtual time of those present (shares.h), and
// then gets its key. A job of a gang does not enter the table: it waits until the gang stands in
// line as one. A job that was chosen for a free lane and leaves takes the choice with it, so that
// the lane is chosen for anew.
#include "csrc/sched/turns/line.h"

#include <algorithm>

#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/gang.h"

namespace gpushare::sched {

void join_line(Step& step, Job& job) {
  job.place.waits_aside = false;
  job.place.waiting_since = step.now();
  if (is_in_gang(job)) {
    job.place.waits_in_gang = true;
  } else {
    stand_in_line(step, job);
  }
}

void stand_in_line(Step& step, Job& job) {
  Table& table = step.table();
  lift(step, job);
  job.place.waits_in_gang = false;
  job.place.is_waiting = true;
  job.place.queued = ++table.num_queued;
  table.device.lane_of(job).waiting.insert(order_key(table.device, job));
}

void leave_line(Step& step, Job& job) {
  job.place.waits_aside = false;
  if (!job.place.is_waiting && !job.place.waits_in_gang) return;
  if (job.place.is_waiting) take_out_of_line(step.device().lane_of(job), job.id);
  job.place.is_waiting = job.place.waits_in_gang = false;
  job.served.waited += std::max(step.now() - job.place.waiting_since, Nanos{});
}

void take_out_of_line(Lane& lane, JobId job) {
  lane.waiting.erase(job);
  if (lane.next != job) return;
  lane.next = JobId{0};
  lane.short_since.reset();
  lane.wait_reason.clear();
}

}  // namespace gpushare::sched
