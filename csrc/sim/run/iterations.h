// When a lease's boundaries come, by arithmetic: an iteration needs no event of its own.
//
//     begin    boundary   gap   boundary   gap
//       |---------|       ....  |-------|  ....
//
// At the moment of a boundary the iteration is over and the gap has begun, even one of no length.
#pragma once

#include <cstdint>

#include "csrc/base/units.h"

namespace gpushare::sim {

class Iterations {
 public:
  // From `now` on: iterations of `iteration` each, with `gap` after each. pre: iteration > 0.
  void begin(Nanos now, Nanos iteration, Nanos gap);

  // Takes note of the boundaries until `now`, that included; how many they are.
  // pre: `now` does not fall.
  std::uint64_t pass(Nanos now);
  // From `now` on an iteration takes so long; what is left of the one under way in proportion.
  // pre: pass(now) was called. post: busy() stays exact.
  void change(Nanos now, Nanos iteration);

  // The n-th boundary from here. pre: n > 0.
  [[nodiscard]] Nanos boundary(std::uint64_t n) const;
  // When the iteration under way began, or the next one will.
  [[nodiscard]] Nanos begun_at() const { return begun_at_; }
  // pre: pass(now) was called.
  [[nodiscard]] bool is_in_gap(Nanos now) const { return now < begun_at_; }
  // The same, with a gap of no length. The first iteration is at no boundary when it begins.
  [[nodiscard]] bool is_at_boundary(Nanos now) const { return has_passed_ && now <= begun_at_; }
  // When the job last went busy or into the gap.
  [[nodiscard]] Nanos changed_at(Nanos now) const { return is_in_gap(now) ? last_ : begun_at_; }
  // Time inside the iterations that are over, in all leases.
  [[nodiscard]] Nanos busy() const { return busy_; }

 private:
  Nanos iteration_;
  Nanos gap_;
  Nanos begun_at_;
  Nanos next_;  // the next boundary
  Nanos last_;  // the last one
  bool has_passed_ = false;
  Nanos busy_;
};

}  // namespace gpushare::sim
