// Which jobs gain by running at the same time: found by trial, and remembered.
//
// While the same jobs run side by side, each one's iterations are timed. Its normalised throughput
// is what it gets done, over what it gets done alone in the same time; those of jobs that take
// turns add up to 1. A set of jobs pays if the sum over its jobs is larger than that of the best
// set with one job less, by kMargin, and goes on to pay while it is not below.
//
// What is found out about a set holds for all sets of jobs of the same kinds (job_kinds.h).
//
// Nobody is faster beside others than alone: a job that is has changed since, and is to be timed
// alone anew.
//
// A verdict that a set does not pay holds for a while, longer each time, or until one of its jobs
// has changed; then it is tried again. Where sets of a size did not pay again and again, others of
// that size are tried seldom, so that on a device that gains nothing trials cost next to nothing.
// Pure: it knows no table, and time only as a number.
// source: Xiao et al., "Gandiva: Introspective Cluster Scheduling for Deep Learning" (OSDI 2018).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/recent_times.h"
#include "csrc/sched/plans/job_kinds.h"

namespace gpushare::sched {

// Jobs with leases of one device at the same time; sorted.
using JobSet = std::vector<JobId>;
// The set without, or with, one of its jobs.
JobSet without(const JobSet& set, JobId job);
JobSet with(const JobSet& set, JobId job);

// The times of one job of a set, by which the set is judged.
struct Pace {
  Nanos iteration;     // alone; 0: not known
  Nanos gap;           // after it, in which the job keeps its lease
  Nanos in_iteration;  // how long the iteration that it is in has taken so far; 0: not known
};

enum class Verdict : std::uint8_t { kTrial, kPays, kDoesNotPay };

class Packing {
 public:
  // The gain over the best set with one job less that a set must show to pay.
  static constexpr double kMargin = 0.05;
  static constexpr Nanos kFirstRetry = seconds(60);
  static constexpr Nanos kLastRetry = seconds(960);

  // The set runs from now on; a trial begins anew, unless it is known to pay.
  void begin(const JobSet& set, Nanos now);
  // An iteration of the job took so long beside the others of the set.
  void add(const JobSet& set, JobId job, Nanos iteration);
  // Judges the set that runs, by the paces of its jobs, in their order. True: the verdict is new.
  bool judge(const JobSet& set, const std::vector<Pace>& paces, Nanos now);

  // Jobs of the set that runs which do more than alone: their times alone are of before.
  [[nodiscard]] JobSet outdated(const JobSet& set, const std::vector<Pace>& paces) const;

  [[nodiscard]] Verdict verdict(const JobSet& set, Nanos now) const;
  [[nodiscard]] Verdict verdict_of_pair(JobId a, JobId b, Nanos now) const;
  // Whether sets of the size may be tried, by what came of the last ones.
  [[nodiscard]] bool may_try(std::size_t size, Nanos now) const;
  // The sum of normalised throughputs when it was judged last. Of a trial that was hopeless before
  // its end, the most that it could have been; 0: it never was judged.
  [[nodiscard]] double total(const JobSet& set) const;
  // The value of the best set with one job less, against which this set is judged.
  [[nodiscard]] double total_before(const JobSet& set) const;

  // The job has ended: what was found out about sets with it is gone, if there is none like it.
  void forget(JobId job);
  // The job's iterations take another time alone. Sets with it are tried again, or are known from
  // those that it is like now.
  void note_change(JobId job, const Likeness& likeness, Nanos now);

 private:
  using KindSet = std::vector<Kind>;  // sorted; as many as jobs
  using Kinds = std::span<const Kind>;
  // A set is looked up by the numbers alone, wherever they stand.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(Kinds kinds) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(Kinds a, Kinds b) const { return std::ranges::equal(a, b); }
  };
  struct Trial {
    Verdict verdict = Verdict::kTrial;
    std::map<JobId, RecentTimes> beside;  // of those who run now, or did last
    double total = 0;
    Nanos retry_at;
    Nanos retry_after = kFirstRetry;
  };
  // The last verdicts about sets of one size.
  struct OfSize {
    std::array<bool, 8> paid{};
    std::size_t num = 0;
    std::size_t next = 0;
    Nanos tried_at;
  };

  void decide(Trial& trial, std::size_t size, bool pays, Nanos now);
  [[nodiscard]] KindSet kinds_of(const JobSet& set) const;
  [[nodiscard]] const Trial* find(Kinds kinds) const;
  [[nodiscard]] const Trial* find(const JobSet& set) const { return find(kinds_of(set)); }
  [[nodiscard]] static Verdict verdict(const Trial* trial, Nanos now);
  Trial& trial_of(const JobSet& set);
  void forget_sets(const Kind& kind);

  JobKinds kinds_;
  std::unordered_map<KindSet, Trial, Hash, Equal> trials_;
  std::map<std::size_t, OfSize> sizes_;
};

}  // namespace gpushare::sched
