// A job's turns: it wants a lease, gave up waiting, closed its lease, or was seen to go on.
//
// A lease ends when its job says so: by Closed, or by wanting the next one, which it can do only
// without a lease. What was used is charged before the lane is free, since places in line follow
// from it. If the lease was asked back while another job waited for memory, the lane stays free a
// moment longer: the job is about to park, and what it can give then may be all that is missing
// (Hold).
//
// If several jobs of a gang hold the lane, it becomes free when the last of them has closed. One
// that closes inside its iteration, since it waits there for another of its gang, lets that one in
// first.
//
// A page says whether the job stopped inside an iteration. It is believed only of a job that was
// asked to (may_be_inside), since its memory is then left alone.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "csrc/sched/events/handlers.h"
#include "csrc/sched/memory/device_memory.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/side_by_side/iteration_timing.h"
#include "csrc/sched/time/gap_chance.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/interrupt.h"
#include "csrc/sched/turns/line.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {
namespace {

// How long the job ran on after it was asked at the end of its quantum. No more than a whole
// quantum counts, so that a job with long iterations still gets one of them a turn.
Nanos overrun_of(const Lane& lane, Nanos now) {
  if (!lane.lease->is_asked_for_quantum()) return {};
  return std::clamp(now - lane.lease->asked_at(), Nanos{}, lane.quantum);
}

// Memory comes back faster than that, but for a budget on transfers.
constexpr Bytes kSlowestSecond = mib(64);
constexpr Nanos kShortestRestore = millis(100);

// How long its memory took to come back, as far as the job can be believed: a turn is made longer
// by it (quantum.h). It is no longer than the lease lasts, nor than the job's room takes to move.
// While its process stood still, the job measured that.
Nanos believed_stall(const Table& table, const Job& job, Nanos said, Nanos now) {
  const Lane* const lane = table.device.lane_held_by(job.id);
  if (lane == nullptr) return std::min(said, job.usage.stall);  // of the lease that has ended
  if (lane->lease->was_suspended) return {};
  const Nanos most = std::min(said, std::max(now - lane->lease->since_of(job.id), Nanos{}));
  if (table.options.transfer_budget > Bytes{0}) return most;
  const Bytes room = table.device.ledger.room(job.id) + job.room.lane;
  const double slowest =
      static_cast<double>(room.value()) / static_cast<double>(kSlowestSecond.value());
  return std::min(most, kShortestRestore + Nanos{std::llround(slowest * 1e9)});
}

// Takes over what the page says. The page may have been seen before, and what it says of the device
// is of the time when that changed.
void observe(Step& step, Job& job, const wire::Usage& seen) {
  const Bytes before = job.usage.device_free;
  wire::Usage believed = seen;
  believed.stall = believed_stall(std::as_const(step).table(), job, seen.stall, step.now());
  job.observe(believed, step.now());
  if (job.place.is_waiting()) {
    step.device().lane_of(job).waiting.update(order_key(step.device(), job));
  }
  if (job.usage.device_free != before) on_device_free(step, job, job.usage.device_free);
}

}  // namespace

// Ends the turn of one job. The lease as a whole (the harvest, the loan of a gap, who has the lane
// next) ends with the last of its holders.
void end_lease(Step& step, Job& job) {
  Device& device = step.device();
  Lane* lane = device.lane_held_by(job.id);
  if (lane == nullptr) return;
  const Nanos now = step.now();
  lane->resume_lease(now);
  const bool is_last = lane->lease->along().empty();
  if (is_last) {
    for (const PolicyRule* const rule : device.policy->rules())
      rule->note_end(step.table(), *lane, job, now);
    note_lent(*lane);
  }
  const Nanos since = lane->lease->since_of(job.id);
  job.charge_lease(since, now);
  job.served.switching += std::min(job.usage.stall, std::max(now - since, Nanos{}));
  note_charged(step, *lane, job);
  job.served.overrun = overrun_of(*lane, now);
  job.measured.note_closed(job.usage, now);
  job.room.note_change();
  if (!is_last) return leave_to_others(*lane, job);
  if (lane->lease->is_asked() && device.need_of_another(job.id) != nullptr) {
    lane->hold = Hold{job.id, now + step.table().options.min_quantum};
  }
  lane->end_lease(now);
}

// The page is ahead of the messages: a job that wants a lease has closed the one before, whether or
// not that was heard.
void on_wanted(Step& step, Job& job, const wire::Wanted& wanted) {
  // A job that wants a lease has none: its page says so.
  if (wanted.usage.is_inside && may_be_inside(step.device(), job)) {
    begin_inside(step, job);
  } else {
    end_inside(step, job, false);
    end_lease(step, job);
  }
  job.place.may_come_inside = false;
  observe(step, job, wanted.usage);
  job.park(step.now());
  if (job.place.waits_for_turn() || !job.is_connected()) return;
  // A job of a gang may wait all the same: the others may need it to end the iteration that they
  // are in.
  if (!job.may_queue() && !is_in_gang(job)) {
    job.place.wait_aside();
  } else {
    join_line(step, job);
  }
}

void on_gave_up(Step& step, Job& job) {
  // If it was granted a lease meanwhile, the word had changed before: the lease never began.
  end_lease(step, job);
  end_inside(step, job, false);
  leave_line(step, job);
}

void on_closed(Step& step, Job& job, const wire::Closed& closed) {
  Lane* const lane = step.device().lane_held_by(job.id);
  if (lane == nullptr || closed.term != job.served.term) return;
  // It was seen in the iteration that it is still in, so it closed since it did nothing there.
  const bool is_blocked = !job.usage.is_in_gap && job.usage.iterations == closed.usage.iterations;
  observe(step, job, closed.usage);
  time_iterations(step, job, true);
  if (closed.usage.is_inside && may_be_inside(step.device(), job)) return begin_inside(step, job);
  if (is_blocked && job.place.is_program_waiting && lane->lease->is_asked()) {
    let_in_for_blocked(step, *lane);
  }
  end_lease(step, job);
}

// The daemon looks at pages for the coordinator. It says nothing that the job did not write.
void on_observed(Step& step, Job& job, const wire::Observed& observed) {
  observe(step, job, observed.usage);
  time_iterations(step, job, false);
  const bool is_holder = step.device().lane_held_by(job.id) != nullptr;
  // The page still says what was spilled when the lease was granted. After an iteration all of that
  // is back.
  if (is_holder && job.usage.iterations > job.served.iterations_granted) {
    job.usage.spilled = Bytes{0};
  }
}

}  // namespace gpushare::sched
