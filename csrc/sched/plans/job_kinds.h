// Which jobs are alike under `pack`: what was found out about one holds for all of its kind.
//
// A search runs one model many times. Those are jobs of one user, with one fingerprint, whose
// iterations take about as long alone: with another batch size, say, they take another time, and
// are another kind. A job without a fingerprint, or that has not been timed, is like no other.
// Pure: it knows no table.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "csrc/base/units.h"

namespace gpushare::sched {

// A number that is used once: of the kinds so far, or of one job of which nothing was noted.
struct Kind {
  std::uint64_t number = 0;
  auto operator<=>(const Kind&) const = default;
};

struct Likeness {
  std::uint32_t uid = 0;
  std::uint64_t fingerprint = 0;  // 0: like no other
  Nanos iteration;                // alone
};

class JobKinds {
 public:
  // Iterations alone of a kind differ by no more than this part.
  static constexpr double kTolerance = 0.25;

  // The job is like this now. If it is the only one of its kind, and like no other, the kind is.
  void note(JobId job, const Likeness& likeness);
  void forget(JobId job);
  [[nodiscard]] Kind of(JobId job) const;
  [[nodiscard]] bool has(const Kind& kind) const { return kinds_.contains(kind); }

 private:
  struct Members {
    Likeness likeness;
    std::size_t num = 0;
  };

  std::unordered_map<JobId, Kind> of_;  // asked for most often
  std::map<Kind, Members> kinds_;
  std::uint64_t num_made_ = 0;
};

}  // namespace gpushare::sched
