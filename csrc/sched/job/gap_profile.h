// How long a job stays away between two leases: what was seen last, and what follows from it for
// the gap it is in.
//
// Gaps are of few kinds (after each batch, after each epoch, while it evaluates), or of any length.
// So the next one is taken to be one of the last, each as likely as the others, of those that are
// not over already; one is over only a sixteenth of its length later, as no two are quite equal.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "csrc/base/units.h"

namespace gpushare::sched {

class GapProfile {
 public:
  // How many gaps it keeps: the last ones.
  static constexpr std::size_t kMostGaps = 64;

  void add(Nanos gap);
  // Takes over the gap of an earlier job until the first gap of this one is known. 0: nothing is
  // known. pre: empty().
  void remember(Nanos gap);
  // 0: no gap of this job is known.
  [[nodiscard]] Nanos median() const;
  [[nodiscard]] bool empty() const { return num_ == 0; }
  // The first time from `elapsed` on at which what begins, and takes `run`, is in the way of a
  // return in more than `most_risk` (0 to 1) of the cases. Nothing: it is away for longer than ever
  // before.
  [[nodiscard]] std::optional<Nanos> risky_from(Nanos elapsed, Nanos run, double most_risk) const;
  // When the next of the gaps that are not over after `elapsed` is.
  [[nodiscard]] std::optional<Nanos> next_over(Nanos elapsed) const;

 private:
  // The known gaps that are not over after `elapsed`, shortest first.
  [[nodiscard]] std::span<const Nanos> left(Nanos elapsed) const;

  std::array<Nanos, kMostGaps> gaps_{};    // in a ring, as they came
  std::array<Nanos, kMostGaps> sorted_{};  // Invariant: the known ones, shortest first
  std::size_t num_ = 0;                    // known
  std::size_t next_ = 0;                   // to be written
  bool is_remembered_ = false;             // the one that is known
};

}  // namespace gpushare::sched
