// The figures of a job so far, counted where things happen and copied into its lease page.
//
// Which problem it solves: a boundary must cost well under a microsecond, and `gpushare status`,
// the policy and the report at the job's end want these figures at any time. So they are plain
// stores into atomics. The thread that iterates writes most of them. Peaks are shifted by whoever
// closes the lease too, and a store that is lost between the two only makes a figure older. All are
// relaxed, since each figure stands alone. The change of the lease word orders them for a
// coordinator that acts on a boundary.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "csrc/base/units.h"
#include "csrc/client/gate/iteration_times.h"
#include "csrc/wire/lease_page.h"

namespace gpushare::client {

struct Boundary {
  wire::BoundaryKind kind = wire::BoundaryKind::kNone;
  bool is_iteration = true;  // false: the iteration was broken off
  bool is_optimizer_step = false;
  Bytes peak;      // the most that the private arena had backed since the last boundary
  Bytes resident;  // what it has backed now
};

class IterationCounters {
 public:
  [[nodiscard]] bool is_in_iteration() const {
    return in_iteration_.load(std::memory_order_relaxed);
  }
  // The thread comes to the gate for its next iteration, where it may have to wait. Ends the gap. A
  // gap that began at a boundary counts. `page` may be null.
  void come(wire::LeasePage* page, Nanos now);
  // An iteration begins. `page` may be null: a job without a coordinator counts too. Does nothing
  // inside an iteration.
  void enter(wire::LeasePage* page, Nanos now);
  // The iteration ends. pre: inside an iteration.
  void leave(wire::LeasePage* page, Nanos now, const Boundary& boundary);
  // The iteration goes on after it stood still for so long at a safepoint. That time does not count
  // as the iteration's. pre: inside an iteration.
  void resume(wire::LeasePage* page, Nanos stood_still);
  // The iteration under way does not count, and ends without a boundary (unregister, fork).
  void forget() { in_iteration_.store(false, std::memory_order_relaxed); }
  // The iterations that follow are another model's.
  void forget_times() {
    training_.forget();
    evaluation_.forget();
    gaps_.forget();
  }
  // The gang's steps count from now on, if they did not before.
  void begin_gang() {
    if (!has_gang_.load(std::memory_order_relaxed)) {
      before_gang_.store(trained(), std::memory_order_relaxed);
      has_gang_.store(true, std::memory_order_relaxed);
    }
  }
  // Writes all figures into a new page.
  void publish(wire::LeasePage& page) const;

  [[nodiscard]] std::uint64_t iterations() const {
    return iterations_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t optimizer_steps() const {
    return optimizer_steps_.load(std::memory_order_relaxed);
  }
  // Iterations that trained since the process joined its gang; 0 without one. Ranks that compute
  // together have the same, though one of them may evaluate alone.
  [[nodiscard]] std::uint64_t gang_steps() const {
    return has_gang_.load(std::memory_order_relaxed)
               ? trained() - before_gang_.load(std::memory_order_relaxed)
               : 0;
  }
  [[nodiscard]] Nanos busy() const { return Nanos{busy_ns_.load(std::memory_order_relaxed)}; }
  // Highest peak of the last few iterations: what the next one is expected to need.
  [[nodiscard]] Bytes expected_peak() const;
  // Changes the remembered peaks. Below 0: this memory of the private arena is needed elsewhere
  // now. Above 0: it is needed there again.
  void shift_peaks(Bytes by);
  // The highest peak of all iterations.
  [[nodiscard]] Bytes highest_peak() const {
    return Bytes{highest_peak_.load(std::memory_order_relaxed)};
  }

 private:
  [[nodiscard]] std::uint64_t trained() const { return trained_.load(std::memory_order_relaxed); }
  void publish_counts(wire::LeasePage& page) const;
  void publish_times(wire::LeasePage& page) const;
  // Long enough that a validation pass between epochs does not hide what training needs.
  static constexpr std::size_t kNumPeaks = 8;

  std::atomic<bool> in_iteration_{false};
  std::atomic<std::int64_t> began_ns_{0};
  std::atomic<std::uint64_t> iterations_{0};
  std::atomic<std::uint64_t> optimizer_steps_{0};
  std::atomic<std::uint64_t> trained_{0};  // all but evaluations
  std::atomic<std::uint64_t> before_gang_{0};
  std::atomic<bool> has_gang_{false};
  std::atomic<std::int64_t> busy_ns_{0};
  std::atomic<std::int64_t> changed_ns_{0};
  std::atomic<std::uint32_t> boundary_kind_{0};
  std::atomic<std::int64_t> highest_peak_{0};
  IterationTimes training_;
  IterationTimes evaluation_;
  // The first gaps may take seconds, while data is read or another program starts. If gaps were
  // taken to be that long, the lease would be lent to others at each boundary, and all memory would
  // move for nothing. So no figure is given before some gaps have counted.
  static constexpr std::uint64_t kNumGapsNeeded = 4;
  IterationTimes gaps_{kNumGapsNeeded};
  std::atomic<bool> is_gap_open_{false};                      // since changed_ns_
  std::array<std::atomic<std::int64_t>, kNumPeaks> peaks_{};  // a ring
  std::atomic<std::size_t> next_peak_{0};
};

}  // namespace gpushare::client
