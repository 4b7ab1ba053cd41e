#include "csrc/sched/gap_profile.h"

#include <algorithm>

namespace gpushare::sched {
namespace {

constexpr int kSlackParts = 16;

Nanos over_at(Nanos gap) { return gap + gap / kSlackParts; }

}  // namespace

void GapProfile::add(Nanos gap) {
  if (is_remembered_) *this = {};
  gaps_.at(next_) = std::max(gap, Nanos{});
  next_ = (next_ + 1) % kMostGaps;
  num_ = std::min(num_ + 1, kMostGaps);
}

void GapProfile::remember(Nanos gap) {
  if (gap <= Nanos{0}) return;
  add(gap);
  is_remembered_ = true;
}

Nanos GapProfile::median() const {
  if (is_remembered_ || empty()) return {};
  std::array<Nanos, kMostGaps> sorted = gaps_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(num_ / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(num_));
  return *middle;
}

std::vector<Nanos> GapProfile::left(Nanos elapsed) const {
  std::vector<Nanos> gaps;
  for (std::size_t i = 0; i < num_; ++i) {
    if (over_at(gaps_.at(i)) > elapsed) gaps.push_back(gaps_.at(i));
  }
  std::sort(gaps.begin(), gaps.end());
  return gaps;
}

std::optional<Nanos> GapProfile::risky_from(Nanos elapsed, Nanos run, double most_risk) const {
  const std::vector<Nanos> gaps = left(elapsed);
  std::size_t num_over = 0;
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    const Nanos begin = std::max(gaps[i] - run, elapsed);
    while (num_over < i && over_at(gaps[num_over]) <= begin)
      ++num_over;
    // Equal ones count together.
    if (i + 1 < gaps.size() && std::max(gaps[i + 1] - run, elapsed) == begin) continue;
    const auto num_hit = static_cast<double>(i + 1 - num_over);
    if (num_hit > most_risk * static_cast<double>(gaps.size() - num_over)) return begin;
  }
  return std::nullopt;
}

std::optional<Nanos> GapProfile::next_over(Nanos elapsed) const {
  const std::vector<Nanos> gaps = left(elapsed);
  if (gaps.empty()) return std::nullopt;
  return over_at(gaps.front());
}

}  // namespace gpushare::sched
