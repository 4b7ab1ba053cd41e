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
  job.place.waiting_since = step.now();
  is_in_gang(job) ? job.place.wait_in_gang() : stand_in_line(step, job);
}

// The number says who came to a line before whom, over all lanes.
void stand_in_line(Step& step, Job& job) {
  Table& table = step.table();
  lift(step, job);
  job.place.stand_in_line(++table.num_queued);
  table.device.lane_of(job).waiting.insert(order_key(table.device, job));
}

// Time aside is not counted as waiting: a person has put the job there.
void leave_line(Step& step, Job& job) {
  if (job.place.waits_for_turn()) {
    job.served.waited += std::max(step.now() - job.place.waiting_since, Nanos{});
  }
  take_out_of_line(step.device().lane_of(job), job.id);
  job.place.stop_waiting();
}

// A job that waits with its gang stays there, since the gang decides together (settle_gangs).
void step_aside(Step& step, Job& job) {
  if (!job.place.is_waiting()) return;
  leave_line(step, job);
  job.place.wait_aside();
}

void step_back(Step& step, Job& job) {
  if (job.place.waits_aside() && job.may_queue()) join_line(step, job);
}

void take_out_of_line(Lane& lane, JobId job) {
  lane.waiting.erase(job);
  if (lane.next() != job) return;
  lane.choose(JobId{0});
  lane.wait_reason.clear();
}

}  // namespace gpushare::sched
