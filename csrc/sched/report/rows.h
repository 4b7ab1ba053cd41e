// What the coordinator shows of its state, as copies: the rows of `gpushare status`, and the answer
// to `gpushare why`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/host_bytes.h"
#include "csrc/base/units.h"
#include "csrc/sched/job/job.h"
#include "csrc/wire/usage.h"

namespace gpushare::sched {

// One row of status: copies, in the order of job numbers.
struct JobRow {
  Identity who;
  Settings settings;
  bool is_registered = false;
  std::string state;  // "starting" "idle" "waiting" "running" "closing" "paused" "suspended" "lost"
  std::string reason;              // the last decision about it
  std::string deadline_note;       // why its deadline has no effect; else empty
  bool is_at_share_limit = false;  // its own, or its user's: it is granted no lease now
  // The job's part of its lane's recent time (busy_meter.h). The parts of all jobs in a lane add up
  // to 1 at most.
  double share = 0;
  Nanos age;   // since it registered; 0 if it has not
  Bytes room;  // ledger
  LaneId in_lane;
  Bytes lane;           // its lane chunks, whether or not the pool has a slot for each
  Bytes transfer_rate;  // bytes a second that it may copy now; 0: no limit
  wire::Usage usage;    // as last seen
  std::uint64_t leases = 0;
  Nanos served;
  Nanos waited;
  Nanos switching;      // of served, until its memory was back; of leases that have ended
  Nanos waiting_since;  // 0 if it does not wait for a lease
  bool waits_for_room = false;
  Term term;
  Nanos iteration;       // how long one is thought to take; 0: unknown
  Nanos long_iteration;  // one in twenty takes longer
  Source iteration_source = Source::kUnknown;
};

// A lane: who runs in it, and until when. Most devices without `pack` have one lane.
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

// A device with everything on it. Sums named "in all" begin with the coordinator, not with the jobs
// that are there.
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
  std::vector<std::string> warnings;  // that hold now: long iterations, a full host tier
};

// All that `gpushare status` shows, of one moment. `epoch` names the coordinator, so that a reader
// sees that it was restarted.
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

}  // namespace gpushare::sched
