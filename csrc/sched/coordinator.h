// The coordinator's decisions: a pure state machine over jobs, lanes and bytes.
//
// It reads no clock, owns no thread, socket or page. Same input, same output: so golden traces are
// its tests and the simulator its laboratory. The daemon (or the simulator) feeds messages and
// deadlines, and carries out the Ready that each call returns, before the next call.
//
// What it holds true:
//   - no room is granted beyond the capacity. The sum of room and of lanes' pools exceeds it only
//     where a job said at its Hello that it has more, or the device turned out smaller (ledger.h);
//   - a lane has at most one open lease, and a job holds at most one;
//   - a lease is granted only to a job that wants one, with its room settled first;
//   - only memory of jobs that are parked, or wait for room, is asked for by spilling; others give
//     free memory at most.
// serve/invariants.h checks the second, and that the books agree with each other.
//
// How bytes change hands: see messages.h. Who gives: parked jobs, furthest next use (by the
// policy's order) first, and only the deficit. Grants wait for room until memory_wait; then the job
// is granted what there is, and its allocation fails as out of memory with the ledger in the text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/job/coordinator_options.h"
#include "csrc/sched/job/job.h"
#include "csrc/sched/job/profiles.h"
#include "csrc/sched/job/ready.h"
#include "csrc/sched/report/rows.h"
#include "csrc/sched/time/singles.h"
#include "csrc/wire/changes.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::sched {

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
  // `seen`: the pages of Ready::observe as they are now. They count before anything is decided.
  Ready on_deadline(Nanos now, std::span<const wire::Observed> seen = {});
  // The process of one of expected_pids ended before it said Hello: nobody waits for it any more.
  Ready on_expected_pid_gone(std::int32_t pid, Nanos now);
  // The job's process is suspended now (Ctrl-Z, SIGSTOP), or goes on (suspended.h). Nothing for a
  // job that is gone.
  Ready set_suspended(JobId job, bool is_suspended, Nanos now);
  // From now on. What the job holds beyond a new limit is asked back. errors: kInvalidArgument, in
  // words for who asked: no such job, another's, a number out of range, or a limit below what the
  // job needs. Nothing has changed then but the books of time, and nothing is to be carried out.
  Result<Ready> set(JobId job, const wire::Changes& changes, const Requester& by, Nanos now);
  // Whom to serve next, from now on. errors: kInvalidArgument for a name that no policy has.
  Result<Ready> set_policy(const std::string& name, Nanos now);

  // For a rank of a gang on several devices: when it may begin iterations (turns/row.h). Nothing
  // for a job that is gone.
  Ready set_row(JobId job, std::optional<GangRow> row, Nanos now);
  // What the rows of the host depend on: which other jobs stand in line here, how a rank stands,
  // and whether it is paused, suspended or lost, so that it gets no lease.
  [[nodiscard]] Singles singles(Nanos now) const;
  [[nodiscard]] Standing standing(JobId job) const;
  [[nodiscard]] Setback setback(JobId job) const;
  [[nodiscard]] bool is_held_back(JobId job) const;

  // What is remembered of jobs that have ended. Those that register from now on begin with it.
  void set_profiles(Profiles profiles);
  [[nodiscard]] const Profiles& profiles() const;

  // For texts about memory; decides nothing.
  void set_unmanaged(std::vector<UnmanagedProcess> processes);

  // The bytes of all jobs in the host tier, or on the way there.
  [[nodiscard]] HostBytes host_used() const;
  // What jobs of other devices have in the same host tier. Counts from the next step on.
  void set_host_used_elsewhere(const HostBytes& bytes);

  [[nodiscard]] Snapshot snapshot(Nanos now) const;
  // The row of one job. Nothing: there is no such job.
  [[nodiscard]] std::optional<JobRow> row(JobId job, Nanos now) const;
  // The user who has paused it. Nothing: it is not paused, or there is no such job.
  [[nodiscard]] std::optional<std::uint32_t> paused_by(JobId job) const;
  // "waits for 3's boundary, at most 0.9 s"; what `gpushare status` and the 5 s line say.
  [[nodiscard]] std::string explain(JobId job, Nanos now) const;
  // Nothing: there is no such job.
  [[nodiscard]] std::optional<Why> why(JobId job, Nanos now) const;
  // The next n jobs of the first lane in order of service, for plans about memory.
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
