// The job's settings, validated before use. Python reads GPUSHARE_* and the TOML files and hands
// them over.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/host_bytes.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/client/cpu/cpu_share.h"

namespace gpushare::client {

// The driver's figures, for all processes together.
struct DeviceMemory {
  Bytes total;
  Bytes free;
};

struct ClientConfig {
  std::string device = "cpu";  // any of the CPU devices, where there are several
  // Where a coordinator is looked for, in this order. If none answers, one is started at the last.
  std::vector<std::string> socket_paths;
  // The program to start; empty: never start one.
  std::string daemon_path;
  std::vector<std::string> daemon_args;  // e.g. {"--capacity", "2GiB"}
  std::string command;                   // what this process runs, for status
  std::string version;
  std::string program;  // the same in all processes of one program; empty: unknown
  // Whether the calling thread is one of several that work on one operation; null: never. Memory
  // does not move while such a thread waits for room, since the others are at work on it.
  bool (*is_in_parallel_region)() = nullptr;
  // How many threads of torch work on one operation. On a CPU, jobs that run side by side share its
  // cores.
  WorkerThreads worker_threads = {};
  // Whether a signal's handler has raised, so that the wait is to end with kCancelled; null: never.
  // Asked now and then, without a lock, on a thread that waits for an answer outside the gate.
  bool (*is_interrupted)() = nullptr;
  // Whether a signal waits for its handler; null: one may. Asked before is_interrupted on a thread
  // that waits in the gate, since memory must be shown before a handler runs.
  bool (*has_signal)() = nullptr;
  // Returns the device's memory now; null, or an empty result: unknown. Called under a lock, on any
  // thread, at hand-overs: it must be quick, and call nothing of this runtime.
  std::function<std::optional<DeviceMemory>()> device_memory;
  // Sets where and how much this process may store in the host tier, as a coordinator says. Called
  // at each new connection, without a lock.
  std::function<void(const std::string& folder, const HostBytes& budgets)> configure_host_tier;
  // A job that loses its coordinator, and can find and start none, does not iterate unmanaged.
  bool requires_coordinator = false;
  // Whether memory that is free between this job's iterations may belong to a lane's pool.
  bool lanes = true;
  // Whether memory that this job leaves in a lane is zeroed at each close: the next holder could
  // read it.
  bool lane_scrub = false;
  // Whether memory that is refused room is used in the host tier, slowly, instead of being out of
  // memory.
  bool overflow = false;
  // Whether this job's access to a lane's memory between leases is a fault. Otherwise it would see
  // another job's bytes.
  bool lane_strict = false;
  // Whether memory that is spilled while the main thread waits in the gate can be used where it
  // was. Without this it leaves a GPU and comes back several times as fast. Memory that is spilled
  // while the main thread runs can be used in any case.
  bool shows_in_gate = true;
  Bytes unmanaged_room{INT64_MAX};     // room while there is no coordinator: no limit
  Nanos connect_timeout = seconds(5);  // for finding or starting a coordinator
  // The pause before the next connection, after three in a row that were of no use. It doubles with
  // each one after that.
  Nanos reconnect_pause = millis(50);
  // How long a request for room waits, beyond the coordinator's own limit, for a coordinator that
  // does not answer at all.
  Nanos answer_patience = seconds(30);
  // After so long without a lease, and none wanted, memory may move, though user code may use it.
  Nanos idle_spill = seconds(10);
  // A lease that others want is closed if the process waits for input for so long (idle_rule.h).
  Nanos idle_rule = seconds(2);
};

// errors: kInvalidArgument naming the field and what it may be.
Status validate(const ClientConfig& config);

}  // namespace gpushare::client
