// An exponentially weighted average in closed form. Busy time that ended `t` ago weighs e^(-t/60
// s), so what is kept is one number and the time of the last turn. The share is that number over
// what time without a pause would weigh. That is right from the first second on, when less than a
// window has passed.
#include "csrc/sched/job/busy_meter.h"

#include <algorithm>
#include <cmath>

namespace gpushare::sched {
namespace {

constexpr double kWindowSeconds = 60;

double seconds_between(Nanos from, Nanos to) { return std::max(to_seconds(to - from), 0.0); }

// The weight of `time` seconds of busy time that end now.
double weight_of(double time) { return kWindowSeconds * -std::expm1(-time / kWindowSeconds); }

}  // namespace

double BusyMeter::busy_until(Nanos now) const {
  const double time = seconds_between(turned_, now);
  return busy_ * std::exp(-time / kWindowSeconds) + (is_busy_ ? weight_of(time) : 0.0);
}

void BusyMeter::turn(bool is_busy, Nanos now) {
  busy_ = busy_until(now);
  turned_ = std::max(turned_, now);
  is_busy_ = is_busy;
}

void BusyMeter::add(Nanos from, Nanos until) {
  turn(true, from);
  turn(false, until);
}

double BusyMeter::share(Nanos now) const {
  const double whole = weight_of(seconds_between(began_, now));
  return whole > 0 ? std::clamp(busy_until(now) / whole, 0.0, 1.0) : 0.0;
}

}  // namespace gpushare::sched
