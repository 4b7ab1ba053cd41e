// How long a job's iterations took lately: the median of the last few samples, so that one odd
// iteration (a checkpoint, an evaluation) does not count.
#pragma once

#include <array>
#include <cstddef>

#include "csrc/base/units.h"

namespace gpushare::sched {

class RecentTimes {
 public:
  // How many samples are kept: the last ones.
  static constexpr std::size_t kMost = 7;
  // The median is relied on once there are so many samples.
  static constexpr std::size_t kEnough = 3;

  void add(Nanos time);
  [[nodiscard]] bool is_known() const { return num_ >= kEnough; }
  // 0 without a sample.
  [[nodiscard]] Nanos median() const;

 private:
  std::array<Nanos, kMost> times_{};
  std::size_t num_ = 0;   // known
  std::size_t next_ = 0;  // to be written
};

}  // namespace gpushare::sched
