// Which iterations are counted as run beside a certain set of jobs.
//
// A job's page is looked at from time to time, and its counters differ between two looks. The first
// difference after a set came together is thrown away, because the iteration under way had begun
// before. After that the busy time over the number of iterations is one sample. A job whose lease
// lasts for a single iteration would never give a sample in this way, as one with long gaps. Then
// the whole lease is the sample, if the set did not change in it.
#include "csrc/sched/side_by_side/iteration_timing.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "csrc/sched/job/admission.h"
#include "csrc/sched/plans/packing.h"

namespace gpushare::sched {
namespace {

// If the median of the iterations alone has moved away from the one that sets were judged by, sets
// with the job are tried again.
void note_alone(SideBySide& sides, Job& job, Nanos now) {
  if (!job.measured.alone.is_known()) return;
  const double before = to_seconds(job.measured.alone_noted);
  const double change = std::abs(to_seconds(job.measured.alone.median()) - before);
  if (change <= JobKinds::kTolerance * before) return;
  job.measured.alone_noted = job.measured.alone.median();
  sides.packing.note_change(job.id,
                            {job.who.uid, job.measured.fingerprint, job.measured.alone_noted}, now);
}

// The callers take samples only from the time in which the same jobs ran. So the set of now is the
// one that the sample belongs to.
void add_time(SideBySide& sides, Job& job, Nanos iteration, Nanos now) {
  if (sides.running.size() > 1) {
    sides.packing.add(sides.running, job.id, iteration);
  } else {
    job.measured.alone.add(iteration);
    note_alone(sides, job, now);
  }
}

TimedFrom timed_from(const Job& job, Nanos since) {
  return {.since = since,
          .is_warming = true,
          .iterations = job.usage.iterations,
          .busy = job.usage.busy,
          .changed_at = job.usage.changed_at,
          .is_in_gap = job.usage.is_in_gap};
}

// A lease of one iteration, as of a job with long gaps: all there is of it.
void time_whole_lease(SideBySide& sides, const Lease& lease, Job& job, Nanos now) {
  if (lease.is_timed || sides.since != lease.granted_at()) return;
  if (job.served.iterations_granted < kIterationsToLearn) return;
  if (job.usage.iterations <= job.served.iterations_granted) return;
  const auto num_new =
      static_cast<std::int64_t>(job.usage.iterations - job.served.iterations_granted);
  add_time(sides, job, (job.usage.busy - lease.busy_before) / num_new, now);
}

}  // namespace

void time_iterations(Step& step, Job& job, bool is_end) {
  Device& device = step.device();
  SideBySide& sides = device.side_by_side;
  if (!std::ranges::binary_search(sides.running, job.id)) return;
  Lane* const lane = device.lane_held_by(job.id);
  if (lane == nullptr || lane->lease->job() != job.id) return;
  Lease& lease = *lane->lease;
  if (!lease.timed_from.has_value() || lease.timed_from->since != sides.since) {
    lease.timed_from = timed_from(job, sides.since);
  }
  TimedFrom& from = *lease.timed_from;
  const wire::Usage& seen = job.usage;
  if (seen.iterations > from.iterations && seen.iterations > kIterationsToLearn) {
    const auto num_new = static_cast<std::int64_t>(seen.iterations - from.iterations);
    const Nanos busy = (seen.busy - from.busy) / num_new;
    // A page that counts backwards says nothing.
    if (!from.is_warming && busy > Nanos{0}) {
      add_time(sides, job, busy, step.now());
      lease.is_timed = true;
      const Nanos whole = (seen.changed_at - from.changed_at) / num_new;
      if (seen.is_in_gap == from.is_in_gap) job.measured.pauses.add(whole - busy);
    }
    from = timed_from(job, sides.since);
    from.is_warming = false;
  }
  if (is_end) time_whole_lease(sides, lease, job, step.now());
}

}  // namespace gpushare::sched
