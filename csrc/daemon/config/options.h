// The options of the coordinator's process: defaults, then the TOML files, then GPUSHARE_SOCKET,
// then the command line; each later one wins.
//
// A bad value anywhere ends in one line that names key, value, where it stands and what is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/host_bytes.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/device_list.h"
#include "csrc/host/gang_rows.h"
#include "csrc/sched/job/coordinator_options.h"

namespace gpushare::daemon {

// The least that the accounts may be allowed: their files then still hold some hundred jobs each.
inline constexpr Bytes kLeastAccountsBudget = mib(1);

// The version of the distribution that this program belongs to.
const char* daemon_version();

struct DaemonOptions {
  std::string socket;  // empty: default_socket_path()
  unsigned socket_mode = 0600;
  std::optional<std::uint32_t> socket_group;  // nothing: that of the process
  // Options that the coordinator takes as they are. It gets its sizes and lanes from the fields
  // below (coordinator_options() in server.cpp).
  sched::CoordinatorOptions coordinator;
  // What the coordinator shares, at least one once it is parsed. Each has the options in
  // `coordinator`, and its own name and capacity; `coordinator.device` is the first one's name.
  std::vector<DeviceOptions> devices;
  Bytes capacity;       // of a single device; 0: half of this machine's memory, of cpu
  Bytes device_memory;  // of a CUDA device, where somebody knows it: the capacity if there is none
  std::optional<Bytes>
      reserve;  // of each capacity, of which jobs get nothing; set once it is parsed
  std::optional<Nanos> linger = seconds(10);  // nothing: never ends by itself
  std::uint32_t num_lanes = 0;                // jobs that may run at the same time; 0: see below
  bool lanes = true;                          // jobs of one user share what is free at boundaries
  // RAM and file together, of all devices. 0: half of this machine's memory.
  Bytes host_budget;
  // The part of host_budget that is in RAM, in front of the file. Nothing: all of it without a
  // file, and none with one.
  std::optional<Bytes> host_ram_budget;
  std::string accounts_folder;  // of finished jobs; empty: none are kept
  Bytes accounts_budget = mib(64);
  log::Level log_level = log::Level::kInfo;
  std::string log_file;  // empty: stderr, or the socket's folder with `daemonize`
  // Refuse a device that another coordinator has; nothing: if it is no cpu.
  std::optional<bool> exclusive;
  bool daemonize = false;
  // Where the arbiter listens that gives rows to gangs over several hosts; empty: there is none.
  std::string arbiter;
  // The file of the secret that this process and the arbiter have in common; empty: none.
  std::string token_file;
  std::string listen;  // this process is the arbiter, and listens here; empty: it is a coordinator
  std::vector<std::string> warnings;  // unknown keys: said once the log is open

  // Whether the socket's mode lets other users in.
  [[nodiscard]] bool is_for_others() const { return (socket_mode & 0066U) != 0; }
};

// The device's name in the names of files that belong to the coordinator: its socket, its journals.
// Of several CUDA devices that is kAllCuda: another coordinator may have the first of them.
std::string_view name_for_files(const DaemonOptions& options);
// The number of lanes under `pack` if num_lanes is 0: one for each core, or the most there may be
// on CUDA. `pack` finds out which of them pay. Under all other policies there is one lane then.
std::uint32_t default_pack_lanes(const DaemonOptions& options);
// Returns the options of gangs' rows, without devices. They are the same in a coordinator and in an
// arbiter.
host::RowOptions row_options(const DaemonOptions& options);
// The host tier of all devices together, in whole pieces. pre: the sizes are filled in.
HostBytes host_budgets(const DaemonOptions& options);

struct ParsedCommandLine {
  DaemonOptions options;
  std::string text;  // of --help or --version: print it and end well; else empty
};

// Reads arguments, environment and files. The sizes left at 0 are filled in from the machine.
// errors: kInvalidArgument, with the line to print.
Result<ParsedCommandLine> parse_command_line(const std::vector<std::string>& arguments);

}  // namespace gpushare::daemon
