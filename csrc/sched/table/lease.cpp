// The moments at which a lease changes.
//
// A suspension is taken out of the lease's life when it ends, and not while it lasts: all times of
// the lease move by its length. Those who joined later move no further than to now, since they may
// have joined in the meantime.
#include "csrc/sched/table/lease.h"

#include <algorithm>

#include "csrc/base/check.h"
#include "csrc/sched/job/lookup.h"

namespace gpushare::sched {

const Lease::Along* Lease::find_along(JobId id) const {
  return find_first(along_, [&](const Along& each) { return each.job == id; });
}

void Lease::ask(Nanos now, const std::string& reason, bool is_quantum_over) {
  GS_CHECK(!is_asked_, "job {} is asked twice for its lease", job_.value);
  is_asked_ = true;
  asked_at_ = now;
  asked_for_ = reason;
  is_asked_for_quantum_ = is_quantum_over;
}

void Lease::suspend(Nanos now) {
  GS_CHECK(!suspended_since_.has_value(), "job {} is suspended twice", job_.value);
  suspended_since_ = now;
  was_suspended = true;
}

void Lease::go_on(Nanos now) {
  GS_CHECK(suspended_since_.has_value(), "job {} was not suspended", job_.value);
  const Nanos time = now - *suspended_since_;
  since_ += time;
  granted_at_ += time;
  asked_at_ += time;
  for (Along& each : along_)
    each.since = std::min(each.since + time, now);
  charged_until = now;
  suspended_since_.reset();
}

void Lease::let_along(JobId job, Nanos now) {
  GS_CHECK(!is_held_by(job), "job {} holds the lane already", job.value);
  along_.push_back({job, now});
}

// The times that were measured, and the room that was to follow, were those of the one job.
void Lease::leave(JobId job) {
  GS_CHECK(!along_.empty() && is_held_by(job), "job {} is no holder of several", job.value);
  if (job != job_) {
    std::erase_if(along_, [&](const Along& each) { return each.job == job; });
    return;
  }
  job_ = along_.front().job;
  since_ = along_.front().since;
  along_.erase(along_.begin());
  timed_from.reset();
  owed = under_way = Bytes{};
}

// The new connection knows no question, and its page no safepoint. Who was let in, and how far the
// others are, is the same as before.
Lease Lease::taken_up(Nanos now) const {
  Lease lease(job_, granted_at_);
  lease.charged_until = now;
  lease.along_ = along_;
  lease.iterations_before = iterations_before;
  lease.let_in = let_in;
  lease.turn_before = turn_before;
  lease.was_suspended = was_suspended;
  return lease;
}

}  // namespace gpushare::sched
