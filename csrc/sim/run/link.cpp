// When a copy is done. Each direction has a time at which it is free again, and a copy begins at
// the latest of: now, its own direction's time, and, unless the link is duplex, the other
// direction's time. The parts in RAM and in the file take their time one after the other.
#include "csrc/sim/run/link.h"

#include <algorithm>
#include <cstdint>

namespace gpushare::sim {
namespace {

Nanos time_of(Bytes bytes, Bytes bytes_a_second) {
  const double taken =
      static_cast<double>(bytes.value()) / static_cast<double>(bytes_a_second.value());
  return Nanos{static_cast<std::int64_t>(taken * 1e9)};
}

}  // namespace

// A copy of nothing waits for nobody.
Nanos Link::copy(Nanos now, Nanos takes, Nanos& free_at) {
  if (takes == Nanos{0}) return now;
  const Nanos other = models_.duplex ? now : std::max(spill_free_at_, restore_free_at_);
  free_at = std::max({now, free_at, other}) + takes;
  return free_at;
}

// The time at which the last byte has left. `in_file`: of `bytes`.
Nanos Link::spill(Nanos now, Bytes bytes, Bytes in_file) {
  const Nanos takes =
      time_of(bytes - in_file, models_.spill) + time_of(in_file, models_.file_spill);
  return copy(now, takes, spill_free_at_);
}

Nanos Link::restore(Nanos now, Bytes bytes, Bytes in_file) {
  const Nanos takes =
      time_of(bytes - in_file, models_.restore) + time_of(in_file, models_.file_restore);
  return copy(now, takes, restore_free_at_);
}

}  // namespace gpushare::sim
