// How long a job stays away between two leases: what was seen last, and what follows from it for
// the gap it is in.
//
// Gaps are of few kinds: after each batch, after each epoch, while it evaluates. So the next return
// is expected at the shortest of the last gaps that is not over already: never much later than the
// job comes, if it comes as one of the last times.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "csrc/base/units.h"

namespace gpushare::sched {

class GapProfile {
 public:
  // Of so many gaps it knows, the last.
  static constexpr std::size_t kMostGaps = 16;

  void add(Nanos gap);
  [[nodiscard]] bool empty() const { return num_ == 0; }
  // The shortest that is longer than `elapsed`; nothing: it is away for longer than ever before.
  [[nodiscard]] std::optional<Nanos> next_after(Nanos elapsed) const;

 private:
  std::array<Nanos, kMostGaps> gaps_{};
  std::size_t num_ = 0;   // known
  std::size_t next_ = 0;  // to be written
};

}  // namespace gpushare::sched
