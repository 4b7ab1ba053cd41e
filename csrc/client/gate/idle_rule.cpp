#include "csrc/client/gate/idle_rule.h"

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
  if (span < (seen.awaits_input ? limit_ : limit_ * kOtherWaits)) return false;
  // Judged over the whole span, so that the interpreter's own housekeeping does not count.
  const bool is_at_work = (seen.cpu - start_.cpu) * 100 >= span * kBusyPercent;
  if (is_at_work) {
    start_ = seen;
    return false;
  }
  is_watching_ = false;
  return true;
}

}  // namespace gpushare::client
