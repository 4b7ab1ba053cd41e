// What a coordinator is made with, and two things that its callers tell it later: who uses the
// device without asking, and who asks for a change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/host_bytes.h"
#include "csrc/base/units.h"
#include "csrc/sched/job/user_options.h"

namespace gpushare::sched {

// More jobs at once than this are not of use on one device.
inline constexpr std::uint32_t kMaxLanes = 16;

struct CoordinatorOptions {
  std::string device = "cpu";
  Bytes capacity = gib(2);  // for jobs, on this device
  Bytes reserve = {};       // of the device, beside that: kept free where others hold much of it
  std::string policy = "fair";  // one of policy_names()
  std::uint64_t epoch = 1;
  Nanos min_quantum = millis(250);  // floor: one iteration, and this
  Nanos max_wait = seconds(10);     // ceiling on waiting
  double switch_loss = 0.02;        // the part of the time that switching may cost
  double class_floor = 0.05;        // of the time, for a class below another, and overdue jobs
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
  // All jobs together may have so much in the host tier, in whole pieces of it. Revokes keep to it
  // (host_tier.h).
  HostBytes host_budget{gib(64), Bytes{0}};
  Users users;
};

// A process that uses the device and asks nobody.
struct UnmanagedProcess {
  std::int32_t pid = 0;
  Bytes resident;
};

// The user who asks for a change, and whether that user may change other users' jobs too.
struct Requester {
  std::uint32_t uid = 0;
  bool may_change_all = false;
};

}  // namespace gpushare::sched
