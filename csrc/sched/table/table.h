// Everything the coordinator knows: its device with lanes and ledger, the jobs, what it recovers.
//
// A coordinator serves one device, so that no rule has to ask which device a job is on: the daemon
// serves one, and the simulator makes one coordinator a device. A Hello that names another device
// is refused (validate.h).
//
// Data with look-ups; it changes in the handlers (handlers.h) and in what follows each of them
// (serve.h). No order of iteration comes from a hash.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sched/job/coordinator_options.h"
#include "csrc/sched/job/job.h"
#include "csrc/sched/job/profiles.h"
#include "csrc/sched/plans/packing.h"
#include "csrc/sched/plans/placement.h"
#include "csrc/sched/plans/quantum.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/sched/table/job_records.h"
#include "csrc/sched/table/lane.h"
#include "csrc/sched/table/ledger.h"

namespace gpushare::sched {

// A request for room that is not met yet. Its job is stopped inside an allocation; it may be asked
// to give up what it has until then (with a lease only by another holder that waits for room): what
// it gives is added to `bytes`, since it needs all of it back before it goes on.
struct WaitingNeed {
  JobId job;
  std::uint64_t n = 0;
  Bytes bytes;
  Bytes like;
  Nanos since;
  bool has_given = false;  // memory of its job is away: it cannot fail, only wait
  bool is_stuck = false;   // nothing that is on its way will meet it
  std::string wait_reason;
  // The figures in wait_reason while the request is stuck for want of room: how much it asked for,
  // how much of it is missing, and what suspended jobs hold.
  std::optional<std::tuple<Bytes, Bytes, Bytes>> said = {};
};

// Jobs side by side under `pack` (side_by_side.h).
struct SideBySide {
  // The first in line may not run beside those that do, and waits to run in their place.
  struct Claim {
    JobId job;
    Nanos since;               // all that were in its way when it came had leases
    Nanos due;                 // then they are asked for their leases, and nobody else begins
    bool is_way_free = false;  // nobody is in its way any more
  };

  Packing packing;
  JobSet running;  // holders, since then
  Nanos since;
  std::optional<Claim> claim;
  Nanos next_look;              // at the holders' pages
  Nanos next_passed_over_look;  // at all waiters
  JobSet drawn_beside;  // beside these no job was found in this step that a free lane could draw
};

// A user's gang of that name (gang.h), or program (program.h).
using GangId = std::pair<std::uint32_t, std::string>;

// What the coordinator knows of its device: the lanes, the ledger and what follows from them.
struct Device {
  Device(std::string name_of_device, std::unique_ptr<const Policy> by, Bytes capacity);

  std::string name;
  std::unique_ptr<const Policy> policy;
  Ledger ledger;
  Bytes total;              // as the driver says; 0: unknown (device_memory.h)
  Bytes held_by_others;     // of it, as far as is known
  std::vector<Lane> lanes;  // each at the place that its id says
  PlacedJobs placed;        // where there are several lanes (lane_moves.h)
  std::map<std::uint32_t, SlotNumbers> slot_numbers;  // by user, of its pools in all lanes
  std::map<std::uint32_t, Allowance> allowances;      // by user, of those with a share_limit
  std::map<JobId, Allowance> job_allowances;          // of jobs with one of their own
  std::set<JobId> inside;                             // their PlaceInLine::is_inside
  std::set<JobId> ranks;                              // those with a Job::row (turns/row.h)
  // When suspended jobs were last seen to hold room, and how much (suspended.h).
  Nanos held_up_until;
  Bytes held_up;
  std::map<GangId, JobSet> gangs;        // of those who take turns
  std::map<GangId, JobSet> programs;     // of all who have said Hello, and one
  std::vector<WaitingNeed> needs;        // by job, and a job's oldest first
  std::optional<WaitingNeed> only_free;  // a Need that does not wait: answered in its step
  Bytes dropped, spilled;                // by revokes, in all
  Bytes asked, planned_spill;            // of revokes in all, and what was to be spilled for them
  std::string host_warning;              // while the host tier is full: said once
  bool is_gang_short = false;            // one of a gang waits for room that is on its way
  bool is_place_lacking = false;         // a job could not store what the ledger had a place for
  Bytes transfer_rate;                   // of a job without a lease; 0: no limit (transfer.h)
  SideBySide side_by_side;

  // Whether the lines of all lanes are one by the policy (Sharing::in_one_line).
  [[nodiscard]] bool has_one_line() const { return policy->sharing().in_one_line; }
  [[nodiscard]] bool has_need(JobId job) const;
  // A request of any other job; null: there is none.
  [[nodiscard]] const WaitingNeed* need_of_another(JobId job) const;
  void add_need(WaitingNeed need);
  // Whether somebody waits for room: in an allocation, for a free lane, or behind its lease.
  [[nodiscard]] bool is_anybody_short() const;
  // The lane whose open lease the job holds, perhaps along with others (gang.h); null: none.
  [[nodiscard]] const Lane* lane_held_by(JobId job) const;
  [[nodiscard]] Lane* lane_held_by(JobId job);
  // The lane that the job queues in, holds its lease in, and is a member of.
  [[nodiscard]] const Lane& lane_of(const Job& job) const {
    return lanes.at(job.place.in_lane.value);
  }
  [[nodiscard]] Lane& lane_of(const Job& job) { return lanes.at(job.place.in_lane.value); }
};

// All jobs that hold the lane; the first is Lease::job. pre: it is held.
JobSet holders_of_lane(const Lane& lane);

struct Table {
  // pre: the options are valid (options.h).
  Table(CoordinatorOptions with, std::unique_ptr<const Policy> policy);

  CoordinatorOptions options;
  JobRecords jobs;
  Device device;
  std::uint64_t num_arrivals = 0;
  std::uint64_t num_queued = 0;
  // After a restart: who has to say Hello before anything is granted, and until when.
  std::set<std::int32_t> expected;
  Nanos recovery_ends;
  std::vector<UnmanagedProcess> unmanaged;  // as last seen
  HostBytes host_used_elsewhere;            // of the same host tier, by jobs of other devices
  Profiles profiles;                        // of jobs that have ended

  [[nodiscard]] const Job* find(JobId job) const;
  [[nodiscard]] Job* find(JobId job);
  // pre: it exists.
  [[nodiscard]] const Job& at(JobId job) const;
  [[nodiscard]] Job& at(JobId job);
  // Lanes that jobs are to be in. There may be more, of the policy before, or while holders are
  // suspended.
  [[nodiscard]] std::size_t num_open_lanes() const;
  [[nodiscard]] bool is_recovering(Nanos now) const;
  // When nobody counts on the answer to its Revoke any more. pre: it has one.
  [[nodiscard]] Nanos answer_due(const Job& job) const;
  [[nodiscard]] bool has_missed_answer(const Job& job, Nanos now) const;
  // Until when the job is waited for to answer its Revoke. Nothing: it has none, or has missed
  // the time.
  [[nodiscard]] std::optional<Nanos> gives_by(const Job& job, Nanos now) const;
  [[nodiscard]] QuantumLimits quantum_limits() const;
};

}  // namespace gpushare::sched
