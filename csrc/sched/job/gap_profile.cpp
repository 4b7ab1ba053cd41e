// Gaps are kept twice: in the order in which they came, so that the oldest can be replaced, and
// sorted, so that questions need one pass.
//
// risky_from() asks at which moment of the gap an iteration of length `run` is too likely to be in
// the way of the job's return. A return `g` after the gap began is in the way of all that begins
// between `g - run` and `g`. So the candidates are the times `g - run`. For each, the known gaps
// that end while the iteration would run are counted against those that are still possible. The
// first candidate that is beyond `most_risk` is the answer.
#include "csrc/sched/job/gap_profile.h"

#include <algorithm>
#include <cstddef>

namespace gpushare::sched {
namespace {

constexpr int kSlackParts = 16;

Nanos over_at(Nanos gap) { return gap + gap / kSlackParts; }

}  // namespace

void GapProfile::add(Nanos gap) {
  if (is_remembered_) *this = {};
  auto end = sorted_.begin() + static_cast<std::ptrdiff_t>(num_);
  if (num_ == kMostGaps) {
    const auto oldest = std::lower_bound(sorted_.begin(), end, gaps_.at(next_));
    end = std::move(oldest + 1, end, oldest);
    --num_;
  }
  const Nanos known = std::max(gap, Nanos{});
  const auto place = std::upper_bound(sorted_.begin(), end, known);
  std::move_backward(place, end, end + 1);
  *place = known;
  ++num_;
  gaps_.at(next_) = known;
  next_ = (next_ + 1) % kMostGaps;
}

void GapProfile::remember(Nanos gap) {
  if (gap <= Nanos{0}) return;
  add(gap);
  is_remembered_ = true;
}

Nanos GapProfile::median() const {
  if (is_remembered_ || empty()) return {};
  return sorted_.at(num_ / 2);
}

std::span<const Nanos> GapProfile::left(Nanos elapsed) const {
  const std::span<const Nanos> known(sorted_.data(), num_);
  const auto first = std::partition_point(known.begin(), known.end(),
                                          [&](Nanos gap) { return over_at(gap) <= elapsed; });
  return known.subspan(static_cast<std::size_t>(first - known.begin()));
}

std::optional<Nanos> GapProfile::risky_from(Nanos elapsed, Nanos run, double most_risk) const {
  const std::span<const Nanos> gaps = left(elapsed);
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
  const std::span<const Nanos> gaps = left(elapsed);
  if (gaps.empty()) return std::nullopt;
  return over_at(gaps.front());
}

}  // namespace gpushare::sched
