// The records of all jobs, and of which of them something is to be looked at in every step.
//
// Which problem it solves: a step changes one job or a few, and costs no more with thousands of
// others. So what a step asks of all jobs (who owes an answer, what is in the host tier, ...) is
// kept, and counted anew for those jobs alone that may have changed.
//
// A job may have changed if somebody had it to change it in this step, which begin_step() begins;
// references end with the step. A job is found by a hash, but no order of iteration comes from one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "csrc/base/host_bytes.h"
#include "csrc/base/units.h"
#include "csrc/sched/job/job.h"

namespace gpushare::sched {

class JobRecords {
 public:
  using Ids = std::set<JobId>;
  // Which jobs have a property that steps ask for.
  struct Kept {
    Ids giving;       // owe a Released
    Ids asked_again;  // are asked again later (RoomRecord::asked_again_at)
    Ids spared;       // have a spared_until, perhaps one that has passed
    Ids suspended;    // their PlaceInLine::is_suspended()
    Ids hurried;      // have a deadline
    Ids guaranteed;   // take turns, and are of that class
    Ids limited;      // have a memory_limit, or their user has
    Ids unheard;  // changed their lane on their page, and not yet by a message; or did so before
    HostBytes in_host_tier{};  // of all, or on the way there
    std::map<std::int32_t, JobId> by_pid;

    bool operator==(const Kept&) const = default;
  };

  JobRecords() = default;
  JobRecords(JobRecords&&) = default;  // no copy: entries have pointers to jobs
  JobRecords& operator=(JobRecords&&) = default;

  void begin_step();
  [[nodiscard]] const Job* find(JobId job) const;
  // To change it; null if there is none.
  [[nodiscard]] Job* find(JobId job);
  // Made if there is none.
  Job& make(JobId job);
  // References to it end.
  void erase(JobId job);

  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] auto begin() const { return jobs_.begin(); }
  [[nodiscard]] auto end() const { return jobs_.end(); }

  // The properties as of now. The reference is valid until a job is changed or erased, so a caller
  // that changes jobs while it goes through one of the sets goes through a copy.
  [[nodiscard]] const Kept& kept() const;

  void check_invariants() const;

 private:
  // The properties of one job.
  struct Part {
    bool is_giving = false;
    bool is_asked_again = false;
    bool is_spared = false;
    bool is_suspended = false;
    bool is_hurried = false;
    bool is_guaranteed = false;
    bool is_limited = false;
    bool is_unheard = false;
    HostBytes in_host_tier{};
    std::int32_t pid = 0;  // 0: none

    bool operator==(const Part&) const = default;
  };
  struct Entry {
    JobId id;
    Job* job = nullptr;
    Part counted;             // as it is in kept_
    bool is_touched = false;  // in this step
  };
  struct Hash {
    std::size_t operator()(JobId job) const { return std::hash<std::uint64_t>{}(job.value); }
  };
  static Part part_of(const Job& job);
  void count(JobId job, Part& counted, const Part& part) const;
  Job& touch(Entry& entry);

  std::map<JobId, Job> jobs_;
  std::unordered_map<JobId, Entry, Hash> entries_;
  std::vector<Entry*> touched_;
  mutable Kept kept_;
};

}  // namespace gpushare::sched
