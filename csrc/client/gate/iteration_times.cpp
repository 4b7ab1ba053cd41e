// Median, 95th percentile and mean of the last 64 times. They are counted anew only at some of the
// times: at each power of two, and at each full ring. So a boundary mostly costs one store, and a
// short job is known early.
#include "csrc/client/gate/iteration_times.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace gpushare::client {
namespace {

constexpr std::size_t kTailPercent = 95;
constexpr std::int64_t kMostOverMedian = 2;

}  // namespace

bool IterationTimes::add(Nanos time) {
  const std::uint64_t num_before = num_.load(kRelaxed);
  num_.store(num_before + 1, kRelaxed);
  if (num_before == 0) return false;
  times_.at((num_before - 1) % kNumKept).store(time.value(), kRelaxed);
  if (num_before < num_needed_) return false;
  // Often at first, so that a short job is known.
  if (!std::has_single_bit(num_before) && num_before % kNumKept != 0) return false;
  count_anew(num_before);
  return true;
}

void IterationTimes::forget() {
  num_.store(0, kRelaxed);
  usual_.store(0, kRelaxed);
  tail_.store(0, kRelaxed);
  mean_.store(0, kRelaxed);
}

// Two partial sorts: the second one needs only the upper half that the first has left.
void IterationTimes::count_anew(std::uint64_t num_kept) {
  std::array<std::int64_t, kNumKept> sorted{};
  const std::size_t num = std::min<std::uint64_t>(num_kept, kNumKept);
  for (std::size_t i = 0; i < num; ++i)
    sorted.at(i) = times_.at(i).load(kRelaxed);
  const auto at = [&](std::size_t place) {
    return sorted.begin() + static_cast<std::ptrdiff_t>(place);
  };
  const auto middle = at(num / 2);
  std::nth_element(sorted.begin(), middle, at(num));
  usual_.store(*middle, kRelaxed);
  const std::int64_t sum = std::accumulate(sorted.begin(), at(num), std::int64_t{0});
  mean_.store(std::min(sum / static_cast<std::int64_t>(num), *middle * kMostOverMedian), kRelaxed);
  const auto last = at((num * kTailPercent + 99) / 100 - 1);
  std::nth_element(middle, last, at(num));
  tail_.store(*last, kRelaxed);
}

wire::IterationTime IterationTimes::figures() const {
  return {Nanos{usual_.load(kRelaxed)}, Nanos{tail_.load(kRelaxed)}};
}

Nanos IterationTimes::mean() const { return Nanos{mean_.load(kRelaxed)}; }

}  // namespace gpushare::client
