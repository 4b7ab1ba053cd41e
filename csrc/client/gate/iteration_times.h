// How long the last iterations of one phase took, or the gaps between them: the usual time, the
// time that one in twenty exceeds, and the mean.
//
// Which problem it solves: a policy asks whether an iteration fits into the time that is left, and
// a mean hides both the warm-up and the long iterations. Only the job sees each iteration. A
// boundary costs one store. The figures are counted anew only now and then, but more often at the
// beginning.
//
// The thread that iterates writes it. Any thread may read its figures. All atomics are relaxed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "csrc/base/units.h"
#include "csrc/wire/usage.h"

namespace gpushare::client {

// For an atomic figure that stands alone: no reader needs another value of the same moment.
inline constexpr auto kRelaxed = std::memory_order_relaxed;

class IterationTimes {
 public:
  static constexpr std::size_t kNumKept = 64;

  // No figure is given before `num_needed` times have counted.
  explicit IterationTimes(std::uint64_t num_needed = 1) : num_needed_(num_needed) {}

  // Returns whether figures() has changed. The first time does not count: the first iteration
  // allocates, compiles and tunes, and is not like those after it.
  bool add(Nanos time);
  // The times that follow are another model's.
  void forget();
  // 0: none is known.
  [[nodiscard]] wire::IterationTime figures() const;
  // At most twice the median, so that one odd wait among few times does not count in full.
  [[nodiscard]] Nanos mean() const;

 private:
  void count_anew(std::uint64_t num_kept);

  const std::uint64_t num_needed_;
  std::atomic<std::uint64_t> num_{0};                        // added, the first too
  std::array<std::atomic<std::int64_t>, kNumKept> times_{};  // a ring
  std::atomic<std::int64_t> usual_{0};
  std::atomic<std::int64_t> tail_{0};
  std::atomic<std::int64_t> mean_{0};
};

}  // namespace gpushare::client
