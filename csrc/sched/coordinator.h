// The coordinator's decisions: a pure state machine over jobs, lanes and bytes.
//
// It reads no clock, owns no thread, socket or page. Same input, same output: so golden traces are
// its tests and the simulator its laboratory. The daemon (or the simulator) feeds messages and
// deadlines, and carries out the Ready that each call returns, before the next call.
//
// What it holds true (check_invariants):
//   - per device, the sum of room over all jobs whose process lives, and of what they share in
//     lanes' pools, is <= capacity;
//   - a lane has at most one open lease, and a job holds at most one;
//   - a lease is granted only to a job that wants one, with its room settled first;
//   - only memory of jobs that are parked, or wait for room, is asked for by spilling; others give
//     free memory at most.
//
// How bytes change hands: see messages.h. Who gives: parked jobs, furthest next use (by the
// policy's order) first, and only the deficit. Grants wait for room until memory_wait; then the job
// is granted what there is, and its allocation fails as out of memory with the ledger in the text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/host_bytes.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/job.h"
#include "csrc/sched/profiles.h"
#include "csrc/sched/ready.h"
#include "csrc/sched/user_options.h"
#include "csrc/wire/messages.h"

namespace gpushare::sched {

// More jobs at once than this are not of use on one device.
inline constexpr std::uint32_t kMaxLanes = 16;
// Under `pack`, where nobody says how many, and a device has no cores to count.
inline constexpr std::uint32_t kFewLanes = 4;

struct CoordinatorOptions {
  std::string device = "cpu";
  Bytes capacity = gib(2);  // for jobs, on this device
  Bytes reserve = {};       // of the device, beside that: kept free where others hold much of it
  std::string policy = "fair";  // one of policy_names()
  std::uint64_t epoch = 1;
  Nanos min_quantum = millis(250);  // floor: one iteration, and this
  Nanos max_wait = seconds(10);     // ceiling on waiting
  double switch_loss = 0.02;        // f of design 5.3: the allowed loss
  double class_floor = 0.05;        // of the time, for each class that waits below another
  Nanos memory_wait = seconds(600);
  Nanos gap_poll = millis(10);            // how often a holder's gap is looked at while others wait
  Nanos iteration_warning = seconds(60);  // a lease held so long without a boundary is reported
  // Pids known to the coordinator before: no lease until each said Hello or is gone, or `recovery`
  // ended.
  std::vector<std::int32_t> expected_pids;
  Nanos recovery = seconds(3);
  Bytes transfer_budget;  // bytes a second that move while others compute (transfer.h); 0: no limit
  std::uint32_t num_lanes = 1;   // so many jobs may run at the same time, as far as they fit
  std::uint32_t pack_lanes = 0;  // under `pack` so many, if that is more
  bool lanes = true;             // jobs of one user share memory that is free at boundaries
  std::string spill_dir;         // empty: host tier in RAM
  // Of all jobs together: Revokes keep to it (host_tier.h). Whole pieces of the tier.
  HostBytes host_budget{gib(64), Bytes{0}};
  Users users;
};

// One row of status: copies, in the order of job numbers.
struct JobRow {
  wire::Address of;
  std::string name;
  std::string group;
  std::string command;
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  bool is_registered = false;
  std::string state;  // "starting" "idle" "waiting" "running" "closing" "paused" "suspended" "lost"
  std::string reason;  // the last decision about it
  wire::Priority priority = wire::Priority::kNormal;
  double weight = 1;
  Nanos deadline;                          // of an iteration; 0: none
  std::string deadline_note;               // that it has no effect; else empty
  double share_limit = 0;                  // 0: none
  bool is_elastic = false;                 // its limits
  bool is_at_share_limit = false;          // its own, or its user's: it is granted no lease now
  std::optional<std::uint32_t> paused_by;  // the user
  double share =
      0;       // of its lane's recent time (busy_meter.h): of those in a lane they add up to 1
  Nanos age;   // since it registered; 0 if it has not
  Bytes room;  // ledger
  Bytes memory_limit;
  LaneId in_lane;
  Bytes lane;           // its lane chunks, whether or not the pool has a slot for each
  Bytes transfer_rate;  // bytes a second that it may copy now; 0: no limit
  wire::Usage usage;    // as last seen
  std::uint64_t iterations_total = 0;
  std::uint64_t leases = 0;
  Nanos served;
  Nanos waited;
  Nanos waiting_since;  // 0 if it does not wait for a lease
  bool waits_for_room = false;
  Term term;
  Nanos iteration;       // how long one is thought to take; 0: unknown
  Nanos long_iteration;  // one in twenty takes longer
  Source iteration_source = Source::kUnknown;
};

struct LaneRow {
  LaneId lane;
  JobId holder;   // 0: none
  JobId next;     // chosen, waits for room; 0: none
  Nanos quantum;  // of the open lease
  Nanos quantum_ends;
  double switch_loss = 0;  // of the device's time, while others wait; above the allowed one where
                           // the ceiling on waiting wins
  Bytes pool = {};         // memory that its jobs share
};

// A user who has jobs here, all of them together.
struct UserRow {
  std::uint32_t uid = 0;
  std::string name;  // as configured; else empty
  double weight = 1;
  double share_limit = 0;          // 0: none
  bool is_at_share_limit = false;  // none of his jobs is granted a lease now
  bool is_elastic = false;         // unless nobody else waits
  Bytes memory;                    // room, and the pools that they share
  Bytes memory_limit;
};

struct DeviceRow {
  std::string device;
  std::string policy;
  Bytes capacity;       // for jobs now
  Bytes withheld = {};  // what was configured beyond that, and others hold
  Bytes free;           // capacity - sum of room and the lanes' pools; negative: beyond it
  std::vector<LaneRow> lanes;
  std::vector<JobRow> jobs;
  std::vector<UserRow> users;  // by number
  std::uint64_t switches = 0;
  Nanos last_handover;         // from Closed until the next grant
  Bytes dropped, spilled;      // by revokes, in all
  Bytes asked, planned_spill;  // of revokes in all, and what was to be spilled for them
  double busy = 0;             // share of recent time with an open lease (busy_meter.h)
  HostBytes host_used;         // in the host tier, or on the way there; of all devices
  HostBytes host_budget;
  Bytes transfer_budget;  // bytes a second; 0: no limit
  std::string spill_dir;
  double switch_loss_allowed = 0;
  std::vector<std::string> warnings;  // that hold now: error texts 4 and 6
};

struct Snapshot {
  std::uint64_t epoch = 0;
  bool is_recovering = false;
  std::vector<DeviceRow> devices;
};

// Why a job runs, waits or is idle, and what would change that; whole sentences, for people.
struct Why {
  JobId job;
  std::string name;
  std::string state;             // as in JobRow
  std::string explain;           // as Coordinator::explain
  std::string decision;          // the last one about it
  std::vector<std::string> now;  // who holds its lane, since when, why, until when; room it lacks
  // The policy's reasons: of a waiter, against those before it; of a holder, against the next.
  std::vector<std::string> order;
  std::vector<std::string> changes;  // what would change that
};

// A process that uses the device and asks nobody.
struct UnmanagedProcess {
  std::int32_t pid = 0;
  Bytes resident;
};

// Who asks for a change: of its own jobs only, or of all.
struct Requester {
  std::uint32_t uid = 0;
  bool may_change_all = false;
};

class Coordinator {
 public:
  // errors: kInvalidArgument for an unknown policy or a number out of range.
  static Result<std::unique_ptr<Coordinator>> create(const CoordinatorOptions& options, Nanos now);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // `from` is the connection's job number, given by the caller at Hello: new, or (after Lost) the
  // old one of the same pid. What a job may not send now (Register twice, another job's number, an
  // unknown device, negative sizes) is answered by Refused, and changes nothing.
  Ready on_message(JobId from, const wire::JobMessage& message, Nanos now);
  Ready on_deadline(Nanos now);
  // The process of one of expected_pids ended before it said Hello: nobody waits for it any more.
  Ready on_expected_pid_gone(std::int32_t pid, Nanos now);
  // The job's process is suspended now (Ctrl-Z, SIGSTOP), or goes on (suspended.h). Nothing for a
  // job that is gone.
  Ready set_suspended(JobId job, bool is_suspended, Nanos now);
  // From now on. What the job holds beyond a new limit is asked back. errors: kInvalidArgument, in
  // words for who asked: no such job, another's, a number out of range, or a limit below what the
  // job needs. Nothing has changed then.
  Result<Ready> set(JobId job, const wire::Changes& changes, const Requester& by, Nanos now);
  // Whom to serve next, from now on. errors: kInvalidArgument for a name that no policy has.
  Result<Ready> set_policy(const std::string& name, Nanos now);

  // What is remembered of jobs that have ended. Those that register from now on begin with it.
  void set_profiles(Profiles profiles);
  [[nodiscard]] const Profiles& profiles() const;

  // For texts about memory; decides nothing.
  void set_unmanaged(std::vector<UnmanagedProcess> processes);

  [[nodiscard]] Snapshot snapshot(Nanos now) const;
  // "waits for 3's boundary, at most 0.9 s"; what `gpushare status` and the 5 s line say.
  [[nodiscard]] std::string explain(JobId job, Nanos now) const;
  // Nothing: there is no such job.
  [[nodiscard]] std::optional<Why> why(JobId job, Nanos now) const;
  // The next n jobs of a device's first lane in order of service, for plans about memory.
  [[nodiscard]] std::vector<JobId> order(std::size_t n) const;
  [[nodiscard]] std::size_t num_jobs() const;
  // Jobs of its lane that may share the pool with this one, itself included; 0: none may.
  [[nodiscard]] std::size_t num_sharing(JobId job) const;
  // Whether there is anybody who may interrupt it (interrupt.h). It may change with who is there
  // and with the policy.
  [[nodiscard]] bool has_interrupter(JobId job) const;
  [[nodiscard]] bool has_transfer_budget() const;
  // Bytes a second that the job may copy now; 0: no limit.
  [[nodiscard]] Bytes transfer_rate(JobId job) const;
  void check_invariants() const;

 private:
  class Impl;
  explicit Coordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpushare::sched
