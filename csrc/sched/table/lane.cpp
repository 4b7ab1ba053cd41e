// What changes in a lane when its lease begins or ends, and when another job is chosen for it.
//
// A lane is either held or looked at for its next job, so a lease that begins ends the choice, with
// all that was said of it: a reason that stayed would be told to people when the lane is free
// again. When a lease ends the time is kept, because what passes until the next grant is what
// changing hands costs.
#include "csrc/sched/table/lane.h"

#include <utility>

#include "csrc/base/check.h"

namespace gpushare::sched {

void Lane::begin_lease(Lease begun, Nanos now) {
  last_holder = begun.job();
  lenders.erase(begun.job());
  lease.lease_ = std::move(begun);
  choose(JobId{0});
  is_stuck_ = false;
  wait_reason.clear();
  hold.reset();
  is_watched = false;
  closed_at.reset();
  busy.turn(true, now);
}

void Lane::end_lease(Nanos now) {
  GS_CHECK(lease.has_value(), "lane {} is free", id.value);
  lease.lease_.reset();
  is_watched = false;
  closed_at = now;
  busy.turn(false, now);
}

void Lane::suspend_lease(Nanos now) {
  lease->suspend(now);
  busy.turn(false, now);
}

// A job whose process was stopped may close its lease, or be gone, before anybody has seen that it
// went on. So the callers ask without knowing.
void Lane::resume_lease(Nanos now) {
  if (!lease->suspended_since().has_value()) return;
  lease->go_on(now);
  busy.turn(true, now);
}

void Lane::choose(JobId job) {
  if (job == next_) return;
  next_ = job;
  short_since_.reset();
  // If nobody is next, the reason for that was said just before.
  if (job != JobId{0}) wait_reason.clear();
}

// The time of the first shortage counts, however often the job is found short: the patience of
// memory_wait begins there.
void Lane::note_short(Nanos now) {
  GS_CHECK(next_ != JobId{0}, "nobody is next in lane {}", id.value);
  short_since_ = short_since_.value_or(now);
}

void Lane::note_stuck(Nanos now) {
  note_short(now);
  is_stuck_ = true;
}

void Lane::check_invariants() const {
  waiting.check_invariants();
  GS_CHECK(next_ == JobId{0} || !lease.has_value(), "job {} is next", next_.value);
  GS_CHECK(next_ == JobId{0} || waiting.contains(next_), "job {} is next", next_.value);
  GS_CHECK(next_ != JobId{0} || !short_since_.has_value(), "nobody is short");
}

}  // namespace gpushare::sched
