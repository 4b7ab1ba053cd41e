// MaxMin chooses which jobs have which kind of device in the next round, so that the job that gets
// on worst gets on as well as it can. It is meant for devices of several speeds, where some jobs
// gain more by a fast device than others. It is a reference for comparisons (policy=maxmin), since
// it knows each job's speeds and moves jobs freely.
//
// A job's progress is the work that it has done over the work that it would do in a round on an
// equal part of all devices, times its weight. An equal part is one device's for a job of one, and
// 1/g of g devices' for a gang of g. Each round is the best for all progress together, if a job's
// counts with exp(-k progress): so who is behind counts most, and the average of the rounds comes
// near the largest least progress that any division of the devices has.
//
// Only what jobs are ahead of each other matters. A job that comes begins where it is worth as much
// as the one that is furthest behind. When jobs come or go nobody stays ahead by more than a few
// rounds, since what was right for the jobs before does not count any more.
//
// source: max-min over throughputs is the policy of Gavel (Narayanan et al., OSDI 2020), which
// solves a linear program; rounds with weights that fall exponentially come near a solution of such
// a program (Freund and Schapire, "Adaptive game playing using multiplicative weights", 1999).
//
// Pure bookkeeping.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace gpushare::sim {

class MaxMin {
 public:
  struct Wish {
    std::size_t job = 0;
    std::optional<std::size_t> kind;  // of the devices that it has
    bool is_fixed = false;            // it cannot leave them. pre: it has some.
  };
  using Given = std::map<std::size_t, std::size_t>;  // the kind, of jobs

  // How many devices there are of each kind.
  explicit MaxMin(std::vector<std::size_t> num_of_kinds);

  [[nodiscard]] bool contains(std::size_t job) const { return jobs_.contains(job); }
  // `speeds`: on each kind. pre: it is not there; it needs one device at least, and some kind has
  // as many; weight > 0.
  void add(std::size_t job,
           const std::vector<double>& speeds,
           std::size_t num_devices,
           double weight);
  void remove(std::size_t job);
  // Work that it has done, in rounds at speed 1. Less than before, as after a failure, changes
  // nothing. pre: it was added.
  void set_done(std::size_t job, double work);

  // The kind of each job that has devices in the next round. pre: each job was added.
  [[nodiscard]] Given next(const std::vector<Wish>& wishes) const;
  // Returns which of these jobs is to have idle devices first, and of which kind. Nothing: no kind
  // has as many idle ones as one of the jobs needs.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> first(
      const std::vector<std::size_t>& jobs, const std::vector<std::size_t>& num_idle) const;

 private:
  struct Job {
    std::vector<double> gains;  // log of the progress that each device gives in a round, by kind
    std::size_t num_devices = 1;
    double usual = 1;  // work in a round on an equal part of all devices, times the weight
    double done = 0;
    double progress = 0;
  };
  using Kinds = std::map<std::size_t, std::optional<std::size_t>>;  // that jobs have now

  [[nodiscard]] static double best_score(const Job& job);
  [[nodiscard]] std::optional<double> most_behind() const;
  [[nodiscard]] double worth(std::size_t job, std::size_t kind, double top) const;
  void cut_leads();
  bool exchange(Given& given, const Kinds& movable, std::size_t one, std::size_t other) const;

  std::vector<std::size_t> num_of_kinds_;
  std::map<std::size_t, Job> jobs_;
};

}  // namespace gpushare::sim
