// Decides whether a lease that others want is in use. A span begins at an observation and goes on
// as long as the same lease is wanted, no allocation or free comes, and observations come in time.
// When the span is long enough, the processor time of the whole span is judged. Above 5 % the
// process is at work, and a new span begins. Otherwise the lease is idle.
//
// The limit is very short while another process of the program waits for a lease or for room, since
// this one probably waits for it. In so short a time a thread may also wait for a disk, or for a
// processor on a loaded machine, so then no thread may be at work. The limit is short for a thread
// that waits for input, and fifteen times as long for any other wait, which usually ends by itself.
// A job that waits for memory is held up by others and never idle.
#include "csrc/client/gate/idle_rule.h"

#include <algorithm>
#include <utility>

namespace gpushare::client {

bool IdleRule::observe(const IdleObservation& seen) {
  const Nanos since_last = seen.now - std::exchange(last_, seen.now);
  if (!seen.is_wanted || seen.is_waiting || since_last > kLongestBetween) {
    is_watching_ = false;
    return false;
  }
  if (!is_watching_ || seen.term != start_.term || seen.num_operations != start_.num_operations) {
    is_watching_ = true;
    start_ = seen;
    return false;
  }
  const Nanos span = seen.now - start_.now;
  const Nanos limit = seen.is_program_waiting ? std::min(limit_, kProgramWaits)
                      : seen.awaits_input     ? limit_
                                              : limit_ * kOtherWaits;
  if (span < limit) return false;
  // Judged over the whole span, so that the interpreter's own housekeeping does not count as work.
  const bool is_at_work = (seen.cpu - start_.cpu) * 100 >= span * kBusyPercent ||
                          (span < limit_ && seen.has_thread_at_work);
  if (is_at_work) {
    start_ = seen;
    return false;
  }
  is_watching_ = false;
  return true;
}

}  // namespace gpushare::client
