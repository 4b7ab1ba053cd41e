// The job's settings, validated before use. Python reads GPUSHARE_* and the TOML files and hands
// them over.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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
  std::string device = "cpu";
  // Looked for in this order; the last one is where a coordinator is started if none answers.
  std::vector<std::string> socket_paths;
  // The program to start; empty: never start one.
  std::string daemon_path;
  std::vector<std::string> daemon_args;  // e.g. {"--capacity", "2GiB"}
  std::string command;                   // what this process runs, for status
  std::string version;
  // Whether the calling thread is one of several that work on one operation; null: never. Memory is
  // not moved while such a thread waits for room: its siblings are at work on it.
  bool (*is_in_parallel_region)() = nullptr;
  // Those of torch. On a CPU, jobs that run side by side share its cores.
  WorkerThreads worker_threads = {};
  // Asked now and then, without a lock, on a thread that waits for an answer outside the gate;
  // null: never. true: a signal's handler has raised, the wait is to end with kCancelled.
  bool (*is_interrupted)() = nullptr;
  // Whether a signal waits for its handler, for a thread that waits in the gate. Asked before
  // is_interrupted, as memory may have to be shown first; null: one may.
  bool (*has_signal)() = nullptr;
  // Returns the device's memory now; null, or an empty result: unknown. Called under a lock, on any
  // thread, at hand-overs: it must be quick, and call nothing of this runtime.
  std::function<std::optional<DeviceMemory>()> device_memory;
  // A job that loses its coordinator, and can find and start none, does not iterate unmanaged.
  bool requires_coordinator = false;
  // Whether this job's memory that is dead between iterations may lie in a lane's pool.
  bool lanes = true;
  // Whether memory that this job leaves in a lane is zeroed at each close: the next holder could
  // read it.
  bool lane_scrub = false;
  // Whether memory that is refused room is used in the host tier, slowly, instead of being out of
  // memory.
  bool overflow = false;
  // Between leases this job's access to a lane's memory is a fault, not a look at another's bytes.
  bool lane_strict = false;
  // Whether what is spilled while the main thread waits in the gate can be used where it was, as it
  // always can while that runs. Without, it leaves a GPU and comes back several times as fast.
  bool shows_in_gate = true;
  Bytes unmanaged_room{INT64_MAX};     // room while there is no coordinator: no limit
  Nanos connect_timeout = seconds(5);  // for finding or starting a coordinator
  // After three connections in a row that were of no use; then twice as long each time.
  Nanos reconnect_pause = millis(50);
  // Without a lease for so long, and none wanted: memory may move, though user code may use it.
  Nanos idle_spill = seconds(10);
  Nanos idle_rule = seconds(2);  // lease asked for, process idle so long inside an iteration: close
};

// errors: kInvalidArgument naming the field and what it may be.
Status validate(const ClientConfig& config);

}  // namespace gpushare::client
