// Which jobs may run at the same time under `pack`, by what is known of them (packing.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {

// Why jobs may not run at the same time.
struct Bar {
  enum class Kind : std::uint8_t {
    kNone,
    kGuaranteed,
    kNotTimed,
    kTooLarge,
    kDelays,
    kOnTrial,
    kDoesNotPay,
    kSize
  };
  Kind kind = Kind::kNone;
  JobSet jobs;  // whom it is about

  explicit operator bool() const { return kind != Kind::kNone; }
};

// "" if there is none.
std::string text_of(const Packing& packing, const Bar& bar);
// "3 and 5".
std::string names_of(const JobSet& set);
// How much faster the set is together than one job alone, and how much it takes to pay: for people.
std::string verdict_text(const Packing& packing, const JobSet& set);

// The jobs that hold leases and run: not those whose process is suspended.
JobSet holders_of(const Device& device);
// How many of a lane's line are looked at to find one that may begin.
inline constexpr std::size_t kMostTried = 16;
// Lanes that are held, so many turns are had at a time; 1 if none is.
std::size_t num_held(const Device& device);

// Holders of leases, and what one more job must be like to run together with all of them. What
// follows from the holders alone is found once, however many jobs are looked at.
class Beside {
 public:
  // `table` must outlive it, and not change meanwhile.
  Beside(const Table& table, JobSet holders, Nanos now);
  // Why the job may not run together with all of them; no bar if it may. pre: it is none of them.
  [[nodiscard]] Bar bar(const Job& job) const;
  // Whether no job at all may: one of the holders runs alone, or they are on trial.
  [[nodiscard]] bool bars_all() const;

 private:
  [[nodiscard]] bool delays_first(const Job& job, const JobSet& all) const;

  const Table& table_;
  JobSet holders_;
  Nanos now_;
  Bytes size_;                   // of all holders
  std::vector<Bar> alone_;       // for each holder: why it runs alone
  std::vector<double> seconds_;  // for each holder: to run; only where that decides
  double least_seconds_ = 0;     // of those
  bool is_on_trial_ = false;     // the holders themselves
};
// Why the job may not run together with the holders of all lanes but its own. No bar if it may.
Bar bar_elsewhere(const Table& table, const Job& job, Nanos now);

// The lane of the holder that is last in order, as if all queued again now; null: there is none.
const Lane* last_in_order(const Table& table, const JobSet& holders, Nanos now);
// Which holders have to make way for the job.
JobSet in_the_way(const Table& table, const Job& job, Nanos now);

}  // namespace gpushare::sched
