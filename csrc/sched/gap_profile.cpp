#include "csrc/sched/gap_profile.h"

#include <algorithm>

namespace gpushare::sched {

void GapProfile::add(Nanos gap) {
  gaps_.at(next_) = std::max(gap, Nanos{});
  next_ = (next_ + 1) % kMostGaps;
  num_ = std::min(num_ + 1, kMostGaps);
}

std::optional<Nanos> GapProfile::next_after(Nanos elapsed) const {
  std::optional<Nanos> next;
  for (std::size_t i = 0; i < num_; ++i) {
    const Nanos gap = gaps_.at(i);
    if (gap > elapsed && gap < next.value_or(gap + Nanos{1})) next = gap;
  }
  return next;
}

}  // namespace gpushare::sched
