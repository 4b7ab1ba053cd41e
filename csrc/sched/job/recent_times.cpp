// The median of a few samples, not the mean: one odd iteration, such as a checkpoint or an
// evaluation, must not count. Samples are a job's own word, so each is cut before it is kept.
#include "csrc/sched/job/recent_times.h"

#include <algorithm>
#include <vector>

namespace gpushare::sched {
namespace {

// Anything above is a wild claim, and sums of it would overflow.
constexpr Nanos kLongest = seconds(1'000'000);

}  // namespace

void RecentTimes::add(Nanos time) {
  times_.at(next_) = std::clamp(time, Nanos{}, kLongest);
  next_ = (next_ + 1) % kMost;
  num_ = std::min(num_ + 1, kMost);
}

Nanos RecentTimes::median() const {
  if (num_ == 0) return {};
  std::vector<Nanos> sorted(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(num_));
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((num_ - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace gpushare::sched
