// The right of one job, or of a gang, to run iterations in a lane, as the coordinator knows it.
//
// Which problem it solves: a lease changes at few moments, and each of them changes several fields
// together. So the fields that say who holds the lease, since when, and whether it was asked back
// are private, and each such moment is one function here. Who begins and ends a lease is the lane
// (lane.h), because the lane's own books change with it.
//
//   held ---ask---> asked back, once a lease
//   held ---suspend---> suspended ---go_on---> held, as if the time between had not passed
//   held alone ---let_along---> held by several of a gang ---leave---> held by those that are left
//
// What it does not do: it knows neither the jobs' records nor the page. Telling a job that it is
// asked is the caller's business (turns/ask_at_boundary.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::sched {

// What a holder's page said, from which on its iterations are timed beside the jobs that run now
// (side_by_side.h).
struct TimedFrom {
  Nanos since;             // those run together
  bool is_warming = true;  // the iteration under way began before
  std::uint64_t iterations = 0;
  Nanos busy;
  Nanos changed_at;
  bool is_in_gap = false;
};

// Whether the lease is a turn out of time that was earned (class_floor.h): by the holder's class,
// or by the overdue jobs of that class.
enum class FloorTurn : std::uint8_t { kNone, kOfClass, kOfOverdue };

class Lease {
 public:
  // Another of a gang (gang.h) that holds the lane too.
  struct Along {
    JobId job;
    Nanos since;
  };

  Lease(JobId holder, Nanos now)
      : charged_until(now), job_(holder), since_(now), granted_at_(now) {}

  // The job that holds the lane; of a gang, the one that holds it for all.
  [[nodiscard]] JobId job() const { return job_; }
  // The time of that job's grant, which may have been along with another one's.
  [[nodiscard]] Nanos since() const { return since_; }
  [[nodiscard]] const std::vector<Along>& along() const { return along_; }
  [[nodiscard]] bool is_held_by(JobId id) const { return job_ == id || find_along(id) != nullptr; }
  // Null: it holds the lane alone, or not at all.
  [[nodiscard]] const Along* find_along(JobId id) const;
  // Since when it holds the lane. pre: it does.
  [[nodiscard]] Nanos since_of(JobId id) const {
    return job_ == id ? since_ : find_along(id)->since;
  }
  // The time of the lease's grant, whoever holds it now.
  [[nodiscard]] Nanos granted_at() const { return granted_at_; }

  [[nodiscard]] bool is_asked() const { return is_asked_; }
  // pre: is_asked().
  [[nodiscard]] Nanos asked_at() const { return asked_at_; }
  [[nodiscard]] const std::string& asked_for() const { return asked_for_; }
  // Whether the quantum was over then, so that what the holder runs on is its overrun.
  [[nodiscard]] bool is_asked_for_quantum() const { return is_asked_for_quantum_; }
  // All who hold it stand still since then (suspended.h).
  [[nodiscard]] const std::optional<Nanos>& suspended_since() const { return suspended_since_; }

  // The lease is asked back. pre: it was not before.
  void ask(Nanos now, const std::string& reason, bool is_quantum_over);
  // Its holders stand still from now on. pre: they did not before.
  void suspend(Nanos now);
  // The holders go on. The times of the lease are moved, so that its quantum, its charge and its
  // age are those of the time in which they could run. pre: they stood still.
  void go_on(Nanos now);
  // Another of the gang holds the lane too.
  void let_along(JobId job, Nanos now);
  // One of several holders has closed. The next of them holds the lane for all, if that was the one
  // who did so. pre: others hold it too.
  void leave(JobId job);
  // The lease as its holder takes it up again over a new connection. What was told to the old one
  // is forgotten; who holds the lane along with it is not.
  [[nodiscard]] Lease taken_up(Nanos now) const;

  // How many iterations each of the gang had when it got its first lease here, where that is known;
  // and who was let in since it was asked back.
  std::map<JobId, std::uint64_t> iterations_before;
  std::set<JobId> let_in;
  Nanos charged_until;            // its user was (shares.h)
  std::string granted_for;        // as recorded; empty if another coordinator granted it
  bool is_asked_inside = false;   // at its next safepoint
  bool is_for_boundary = false;   // it stopped inside for nobody: not asked there again
  Nanos turn_before;              // of its turn, in leases that ended inside an iteration
  bool is_asked_for_gap = false;  // which is lent (gap_chance.h)
  FloorTurn floor_turn = FloorTurn::kNone;
  bool was_suspended = false;  // its holders stood still for a while
  bool is_warned = false;      // of an iteration that does not end
  Nanos warned_since;          // when that iteration began
  std::optional<TimedFrom> timed_from;
  bool is_timed = false;  // an iteration of it was
  Nanos busy_before;      // when it was granted, as TimedFrom has it
  Bytes owed;             // room that follows it, for memory needed late
  Bytes under_way;        // room that has followed it, and is not consumed yet

 private:
  JobId job_;
  Nanos since_;
  std::vector<Along> along_;  // Invariant: without job_.
  Nanos granted_at_;
  std::optional<Nanos> suspended_since_;
  bool is_asked_ = false;
  Nanos asked_at_;
  std::string asked_for_;
  bool is_asked_for_quantum_ = false;
};

}  // namespace gpushare::sched
