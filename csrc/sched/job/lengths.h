// How many iterations the jobs of one model ran, and what follows for one that does not say how
// many it will run.
//
// The last kMost are kept as they are, in place of an average: of a model that is trained for 100
// or for 10,000 iterations a job that has run 200 has thousands to go, and no average says that. A
// job that was ended early counts as what it ran, since so long it used the device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gpushare::sched {

// One job that has ended. Jobs of a name are more alike than others of their model.
struct PastRun {
  std::uint32_t name = 0;  // number_of_name()
  std::uint64_t iterations = 0;
  bool operator==(const PastRun&) const = default;
};

// The same number in every run of every coordinator (FNV-1a).
constexpr std::uint32_t number_of_name(std::string_view name) {
  std::uint32_t number = 2'166'136'261U;
  for (const char letter : name)
    number = (number ^ static_cast<unsigned char>(letter)) * 16'777'619U;
  return number;
}

// How many iterations a job is expected to have left, and between which bounds the number lies if
// the job is like one before it.
struct ExpectedRest {
  double iterations = 0;  // 0: unknown
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::size_t runs = 0;    // that it follows from
  bool is_beyond = false;  // the job has run longer than all of them
};

class Lengths {
 public:
  static constexpr std::size_t kMost = 16;
  // Of a job that has run longer than all before it: what it has to go still, over what it has run.
  // That is about the mean if the logarithms of lengths have a standard deviation of 0.3, which is
  // assumed for jobs of one model. A job that has run for twice the longest one is of another kind,
  // and nothing is known of it.
  static constexpr double kBeyond = 0.25;

  void note(const PastRun& run) {
    if (run.iterations == 0) return;
    if (runs_.size() == kMost) runs_.erase(runs_.begin());
    runs_.push_back(run);
  }
  void note_all(const Lengths& newer) {
    for (const PastRun& run : newer.runs_)
      note(run);
  }
  // The oldest first.
  [[nodiscard]] const std::vector<PastRun>& runs() const { return runs_; }

  // For a job that has run `done` iterations: the mean of what earlier jobs had to go after as
  // many. Jobs that had ended by then say nothing of it, unless all had, and not long before: then
  // kBeyond times what the job has run is left. If some had the job's name, only they count.
  // source: the mean residual life; Gu et al., "Tiresias: A GPU Cluster Manager for Distributed
  // Deep Learning" (NSDI 2019), ranks jobs by how long those before them ran.
  [[nodiscard]] ExpectedRest rest(std::uint32_t name, std::uint64_t done) const {
    const bool is_known_by_name =
        std::any_of(runs_.begin(), runs_.end(), [&](const PastRun& r) { return r.name == name; });
    ExpectedRest rest;
    double sum = 0;
    std::uint64_t longest = 0;
    std::size_t num = 0;
    for (const PastRun& run : runs_) {
      if (is_known_by_name && run.name != name) continue;
      ++num;
      longest = std::max(longest, run.iterations);
      if (run.iterations <= done) continue;
      const std::uint64_t to_go = run.iterations - done;
      sum += static_cast<double>(to_go);
      rest.least = rest.runs == 0 ? to_go : std::min(rest.least, to_go);
      rest.most = std::max(rest.most, to_go);
      ++rest.runs;
    }
    if (rest.runs > 0) {
      rest.iterations = sum / static_cast<double>(rest.runs);
    } else if (longest > done / 2) {
      rest = {.iterations = static_cast<double>(done) * kBeyond, .runs = num, .is_beyond = true};
    }
    return rest;
  }

  bool operator==(const Lengths&) const = default;

 private:
  std::vector<PastRun> runs_;  // Invariant: at most kMost.
};

}  // namespace gpushare::sched
