// How long the last iterations of one phase took, or the gaps between them: what is usual, what one
// in twenty exceeds, and the mean.
//
// Which problem it solves: a policy asks whether an iteration fits into the time there is, and a
// mean hides both the warm-up and the long ones. Only the job sees each iteration. A boundary costs
// a store; the two figures are counted anew now and then, of the first few more often.
//
// Written by the thread that iterates; its figures are read by any. All atomics are relaxed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "csrc/base/units.h"
#include "csrc/wire/usage.h"

namespace gpushare::client {

// For an atomic figure that stands alone: whoever reads it takes no other value to go with it.
inline constexpr auto kRelaxed = std::memory_order_relaxed;

class IterationTimes {
 public:
  static constexpr std::size_t kNumKept = 64;

  // No figure is given before `num_needed` times have counted.
  explicit IterationTimes(std::uint64_t num_needed = 1) : num_needed_(num_needed) {}

  // Whether now() is new. The first is not like those after it (it allocates, compiles, tunes), and
  // does not count.
  bool add(Nanos time);
  // Those that follow are of another model.
  void forget();
  // 0: none is known.
  [[nodiscard]] wire::IterationTime now() const;
  // At most twice the median: one odd wait among few times is not what a job does.
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
