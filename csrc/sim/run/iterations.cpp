// Boundaries of a lease by arithmetic. Three times describe it all: when the iteration under way
// began (begun_at_), its boundary (next_), and the boundary before (last_). In a gap begun_at_ lies
// in the future, since it is when the next iteration will begin.
#include "csrc/sim/run/iterations.h"

#include <cmath>
#include <cstdint>

namespace gpushare::sim {

// The first iteration of a lease begins now. Its gap comes after it.
void Iterations::begin(Nanos now, Nanos iteration, Nanos gap) {
  iteration_ = iteration;
  gap_ = gap;
  begun_at_ = now;
  next_ = now + iteration;
  has_passed_ = false;
}

// All boundaries up to `now` are passed in one step. The first ends the iteration under way, which
// may have been slowed; the others are whole iterations and gaps.
std::uint64_t Iterations::pass(Nanos now) {
  if (now < next_) return 0;
  const std::int64_t num_more = (now - next_) / (iteration_ + gap_);
  busy_ += next_ - begun_at_ + iteration_ * num_more;
  last_ = next_ + (iteration_ + gap_) * num_more;
  begun_at_ = last_ + gap_;
  next_ = begun_at_ + iteration_;
  has_passed_ = true;
  return static_cast<std::uint64_t>(num_more) + 1;
}

// In a gap only the next iteration is concerned. Inside an iteration the time that is left is
// scaled.
void Iterations::change(Nanos now, Nanos iteration) {
  if (iteration == iteration_) return;
  if (now <= begun_at_) {
    next_ = begun_at_ + iteration;
  } else {
    const double ratio =
        static_cast<double>(iteration.value()) / static_cast<double>(iteration_.value());
    const auto left = static_cast<double>((next_ - now).value());
    next_ = now + Nanos{std::llround(left * ratio)};
  }
  iteration_ = iteration;
}

// The n-th boundary from now on, the next one being the first, if nothing changes until then.
Nanos Iterations::boundary(std::uint64_t n) const {
  return next_ + (iteration_ + gap_) * static_cast<std::int64_t>(n - 1);
}

}  // namespace gpushare::sim
