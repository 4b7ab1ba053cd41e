// Which jobs have which kind of device in the next round, if the job that gets on worst is to get
// on as well as it can: the policy of clusters whose devices have unlike speeds, some for some jobs
// more than for others. A reference for comparisons (policy=maxmin): it knows each job's speeds and
// moves jobs freely.
//
// A job's progress is the work that it has done over the work that it would do in a round on an
// equal part of all devices, times its weight. Each round is the best for all progress together, if
// a job's counts with exp(-progress): so who is behind counts most, and the average of the rounds
// comes near the largest least progress that any division of the devices has.
//
// source: max-min over throughputs is the policy of Gavel (Narayanan et al., OSDI 2020), which
// solves a linear program; rounds with weights that fall exponentially are a solution of the same
// program (Freund and Schapire, "Adaptive game playing using multiplicative weights", 1999).
//
// Pure bookkeeping.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace gpushare::sim {

class MaxMin {
 public:
  struct Wish {
    std::size_t job = 0;
    std::optional<std::size_t> kind;  // that it has now
  };

  // How many devices there are of each kind.
  explicit MaxMin(std::vector<std::size_t> num_of_kinds);

  // `speeds`: on each kind. Its progress begins at the least of those that are there, so that who
  // comes late is not ahead of everybody for as long as the others have run. No-op for a job that
  // is there. pre: it needs one device at least, and some kind has as many.
  void add(std::size_t job, std::vector<double> speeds, std::size_t num_devices, double weight);
  void remove(std::size_t job) { jobs_.erase(job); }
  // Work that it has done since it was added, in rounds at speed 1.
  void set_done(std::size_t job, double work);

  // The kind of each job that has devices in the next round. What is left idle suits nobody, or is
  // too little for those that wait. pre: each job was added.
  [[nodiscard]] std::map<std::size_t, std::size_t> next(const std::vector<Wish>& wishes) const;
  // Of these jobs the one that is to have some of the idle devices first, and their kind. Nothing:
  // no kind has as many as one of them needs.
  [[nodiscard]] std::optional<std::pair<std::size_t, std::size_t>> first(
      const std::vector<std::size_t>& jobs, const std::vector<std::size_t>& num_idle) const;

 private:
  struct Job {
    std::vector<double> rates;  // progress in a round, on each kind
    std::size_t num_devices = 1;
    double begun_at = 0;  // progress of the others when it came
    double done = 0;      // rounds at speed 1
    double usual = 1;     // work in a round on an equal part of all devices, times the weight

    [[nodiscard]] double progress() const { return begun_at + done / usual; }
  };
  using Given = std::map<std::size_t, std::size_t>;

  [[nodiscard]] double least_progress() const;
  [[nodiscard]] double worth(const Job& job, std::size_t kind, double least) const;
  bool exchange(Given& given, std::size_t one, std::size_t other, double least) const;

  std::vector<std::size_t> num_of_kinds_;
  std::map<std::size_t, Job> jobs_;
};

}  // namespace gpushare::sim
