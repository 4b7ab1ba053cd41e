// How much of the recent time a lane had an open lease, or a job one of its own: an average in
// which time counts less the older it is, by e for each minute. Exact in the times of the turns; no
// samples are kept.
#pragma once

#include "csrc/base/units.h"

namespace gpushare::sched {

class BusyMeter {
 public:
  explicit BusyMeter(Nanos now) : began_(now), turned_(now) {}

  // A lease begins to be open at `now`, or ends.
  void turn(bool is_busy, Nanos now);
  // A turn of that time is over, which was not told when it began.
  void add(Nanos from, Nanos until);
  [[nodiscard]] Nanos began() const { return began_; }
  // 0 to 1; 0 before any time has passed.
  [[nodiscard]] double share(Nanos now) const;

 private:
  // Seconds of busy time until `now`, by weight.
  [[nodiscard]] double busy_until(Nanos now) const;

  Nanos began_;
  Nanos turned_;
  bool is_busy_ = false;
  double busy_ = 0;  // until turned_
};

}  // namespace gpushare::sched
