// Puts the options together: defaults, then TOML files, then the environment, then the command
// line. Each later one wins.
//
// The device comes before all of them, since it says which of a file's settings are meant. Several
// devices may come from a file or from GPUSHARE_DEVICES; a single one that is named on the command
// line wins over those. Sizes that nobody has given are filled in last, from the machine's memory,
// and from the device's where somebody knows it. What may go wrong: any value that is not allowed
// ends in one line that names it, where it stands and what is allowed.
#include "csrc/daemon/config/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/config_file.h"
#include "csrc/daemon/config/environment.h"
#include "csrc/daemon/config/paths.h"
#include "csrc/daemon/config/setting_values.h"
#include "csrc/daemon/config/settings.h"
#include "csrc/daemon/config/user_settings.h"
#include "csrc/daemon/machine/machine_memory.h"
#include "csrc/ipc/stream.h"
#include "csrc/sched/coordinator.h"
#include "csrc/wire/device_name.h"
#include "csrc/wire/limits.h"

// The build passes the distribution's version; without it this is a build by hand.
#ifndef GS_VERSION
#define GS_VERSION "0.1.0.dev0"
#endif

namespace gpushare::daemon {
namespace {

// The arguments as they were given. They are applied later, since files come first.
struct CommandLine {
  std::map<const Setting*, std::string> given;  // value of each option
  std::string config;
  bool daemonize = false;
  bool is_arbiter = false;
  std::string listen;
};

std::string version_text() {
  return fmt::format("gpushared {} (protocol {})", daemon_version(), wire::kProtocolVersion);
}

// Splits the command line. Whether a value is allowed is the Setting's business. CLI11 reports by
// exceptions, which all end here. Returns the text of --help or --version, or an empty one.
Result<std::string> read_arguments(std::vector<std::string> arguments, CommandLine& line) {
  CLI::App app("The coordinator: lets jobs share one device, iteration by iteration.", "gpushared");
  app.set_version_flag("--version", version_text());
  for (const Setting& setting : all_settings()) {
    if (setting.option == nullptr) continue;
    app.add_option_function<std::string>(
           setting.option,
           [&line, &setting](const std::string& text) { line.given[&setting] = text; },
           fmt::format("{}: {}", setting.help, setting.allowed))
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  app.add_option("--config", line.config, "one TOML file instead of the default ones");
  app.add_flag("--daemonize", line.daemonize,
               "go to the background; return once the socket answers");
  app.add_flag("--arbiter", line.is_arbiter,
               "be the arbiter of several hosts' coordinators, and no coordinator");
  app.add_option("--listen", line.listen,
                 "with --arbiter, where its hosts find it: tcp:ADDRESS:PORT or unix:/PATH");
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::CallForVersion&) {
    return version_text() + "\n";
  } catch (const CLI::ParseError& error) {
    return fail(StatusCode::kInvalidArgument, error.what());
  }
  return std::string();
}

// Applies the options that name devices, or all others.
Status apply_given(const CommandLine& line, bool is_device, DaemonOptions& options) {
  for (const auto& [setting, value] : line.given) {
    const std::string_view option = setting->option;
    if ((option == kDeviceOption || option == kDevicesOption) != is_device) continue;
    const Nanos unit{setting->option_unit_ns};
    GS_RETURN_IF_ERROR(apply_setting(*setting, value, unit, setting->option, options));
  }
  return {};
}

// One file that was named on the command line or in GPUSHARE_CONFIG, or the default files, the
// user's own last.
Status read_files(const CommandLine& line, DaemonOptions& options) {
  const char* variable = std::getenv("GPUSHARE_CONFIG");
  const std::string config =
      line.config.empty() && variable != nullptr ? std::string(variable) : line.config;
  if (!config.empty()) return read_config_file(config, true, options);
  for (const std::string& path : default_config_paths()) {
    GS_RETURN_IF_ERROR(read_config_file(path, false, options));
  }
  return {};
}

// Several devices come from the command line, else from the variable, else from a file. A single
// one of the command line beats the latter two: a job that starts the coordinator of a GPU names
// it.
Status choose_devices(const CommandLine& line, DaemonOptions& options) {
  const bool is_one_named = line.given.contains(find_option(kDeviceOption));
  const bool are_named = line.given.contains(find_option(kDevicesOption));
  if (is_one_named && are_named) {
    return {StatusCode::kInvalidArgument,
            "--device and --devices: give one of them; --device is for a single device"};
  }
  const bool is_kind_named = options.coordinator.device == wire::kAllCuda;
  if (is_one_named) options.devices.clear();
  const Setting& setting = *find_option(kDevicesOption);
  // A file that names some has replaced them.
  if (are_named && !setting.apply(options, line.given.at(&setting), Nanos{0}))
    return bad_value("--devices", line.given.at(&setting), setting);
  const char* variable = std::getenv("GPUSHARE_DEVICES");
  if ((!is_one_named || is_kind_named) && !are_named && variable != nullptr && *variable != '\0') {
    if (!setting.apply(options, variable, Nanos{0})) {
      return bad_value("GPUSHARE_DEVICES", variable, setting);
    }
  }
  if (!options.devices.empty()) options.coordinator.device = options.devices.front().name;
  if (is_kind_named && !wire::is_cuda(options.coordinator.device)) {
    return {
        StatusCode::kInvalidArgument,
        "--device cuda: name the devices in GPUSHARE_DEVICES, like \"cuda:GPU-UUID=40GiB,...\""};
  }
  return {};
}

// The variable beats the file, and names a socket for jobs and coordinator alike. An option of the
// command line, which is applied after this, beats both.
Status choose_socket(DaemonOptions& options) {
  const char* variable = std::getenv("GPUSHARE_SOCKET");
  // "none" tells jobs to look for no coordinator; it is no place to listen at.
  if (options.socket == "none") options.socket.clear();
  if (variable != nullptr && *variable != '\0' && std::string_view(variable) != "none") {
    if (!is_socket_path(variable)) {
      return bad_value("GPUSHARE_SOCKET", variable, *find_setting("coordinator.socket"));
    }
    options.socket = variable;
  }
  if (options.socket.empty()) options.socket = default_socket_path(name_for_files(options));
  return {};
}

// The part of a GPU that processes take beside jobs' memory, as they go. Contexts take 0.5 GiB
// each; modules, workspaces of libraries and graphs come on top (0.4 GiB for a job that uses many
// graphs). A tenth of the memory, but at most 1.5 GiB, and at least a fiftieth.
Bytes drivers_part_of(Bytes device_memory) {
  const Bytes part = std::max(std::min(device_memory / 10, mib(1536)), device_memory / 50);
  return mib(2) * (part / mib(2));
}

Status unknown_memory(const std::string& device) {
  return {StatusCode::kInvalidArgument,
          fmt::format("--capacity: the memory of {} is not known here. Give it with --capacity, "
                      "GPUSHARE_CAPACITY, or capacity under [device.cuda] in a file",
                      device)};
}

Status bad_reserve(Bytes reserve, Bytes capacity) {
  return {StatusCode::kInvalidArgument,
          fmt::format("--reserve: bad value \"{}\"; allowed: at least 2 MiB less than the capacity "
                      "of {}",
                      to_string(reserve), to_string(capacity))};
}

// Each of several devices has the size in the list, or the capacity of its kind. If `device_memory`
// is given, these sizes are all of the devices' memory, so drivers need a part of each. A CUDA
// device that is too small for jobs, such as one that only drives a display, is left out.
Status fill_in_devices(DaemonOptions& options) {
  const Bytes of_kind = options.capacity;
  Status status;
  std::vector<DeviceOptions> large_enough;
  for (DeviceOptions& device : options.devices) {
    if (device.capacity == Bytes{0}) device.capacity = of_kind;
    if (device.capacity == Bytes{0}) return unknown_memory(device.name);
    const Bytes drivers =
        options.device_memory > Bytes{0} ? drivers_part_of(device.capacity) : Bytes{0};
    device.reserve = options.reserve.value_or(drivers);
    if (device.capacity - device.reserve >= mib(2)) {
      large_enough.push_back(device);
      continue;
    }
    status = bad_reserve(device.reserve, device.capacity);
    options.warnings.push_back(fmt::format("{} has {} and is left out: {} would be kept from jobs",
                                           device.name, to_string(device.capacity),
                                           to_string(device.reserve)));
  }
  if (large_enough.empty() || (!status.ok() && !wire::is_cuda(options.coordinator.device)))
    return status;
  options.devices = std::move(large_enough);
  options.coordinator.device = options.devices.front().name;
  options.capacity = least_capacity(options.devices);
  return {};
}

// A CUDA device's capacity is all of its memory, less what drivers need; it must be known. A CPU's
// is half of the machine's memory, and so is the host tier's budget.
Status fill_in_sizes(DaemonOptions& options) {
  const bool is_one = options.devices.empty();
  const bool is_cuda = wire::is_cuda(options.coordinator.device);
  if (is_one && is_cuda && options.capacity == Bytes{0}) {
    if (options.device_memory == Bytes{0}) return unknown_memory(options.coordinator.device);
    options.capacity = options.device_memory;
    if (!options.reserve) options.reserve = drivers_part_of(options.device_memory);
  }
  const bool is_half_meant = is_one && options.capacity == Bytes{0};
  if (is_half_meant || options.host_budget == Bytes{0}) {
    const auto memory = machine_memory();
    if (!memory) return memory.error();
    const Bytes half = mib(*memory / mib(4) * 2);
    if (is_half_meant) options.capacity = half;
    if (options.host_budget == Bytes{0}) options.host_budget = half;
  }
  if (!is_one) return fill_in_devices(options);
  if (!options.reserve) options.reserve = Bytes{0};
  options.devices = {{options.coordinator.device, options.capacity, *options.reserve}};
  if (options.capacity - *options.reserve >= mib(2)) return {};
  return bad_reserve(*options.reserve, options.capacity);
}

// A part in RAM is part of the host budget, and means something only in front of a file.
Status check_host_budgets(const DaemonOptions& options) {
  const auto refuse = [&](const std::string& allowed) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--host-ram-budget: bad value \"{}\"; allowed: {}",
                              to_string(*options.host_ram_budget), allowed));
  };
  if (!options.host_ram_budget.has_value()) return {};
  if (options.coordinator.spill_dir.empty()) {
    return refuse(
        "only with a --spill-dir for the rest; without one all of the host budget is RAM");
  }
  if (*options.host_ram_budget <= options.host_budget) return {};
  return refuse(
      fmt::format("at most the host budget of {}, part of which it is; raise --host-budget",
                  to_string(options.host_budget)));
}

// An arbiter has no device, so options of devices and sockets are ignored. A coordinator that is to
// have an arbiter needs the secret that they have in common.
Status check_arbiter(const CommandLine& line, DaemonOptions& options) {
  const auto refuse = [](const char* text) { return Status(StatusCode::kInvalidArgument, text); };
  if (line.is_arbiter) {
    if (line.listen.empty()) return refuse("--arbiter: give --listen tcp:ADDRESS:PORT");
    const auto address = ipc::parse_stream_address(line.listen);
    if (!address) return refuse(fmt::format("--listen: {}", address.error().message()).c_str());
    if (options.token_file.empty()) return refuse("--arbiter: give --token-file, its secret");
    if (line.daemonize) return refuse("--arbiter: it does not go to the background itself");
    options.listen = line.listen;
    return {};
  }
  if (!line.listen.empty())
    return refuse("--listen: only with --arbiter; a coordinator has --socket");
  if (options.arbiter.empty() || !options.token_file.empty()) return {};
  return refuse("--arbiter-address: give --token-file, the secret of that arbiter");
}

}  // namespace

std::string_view name_for_files(const DaemonOptions& options) {
  const std::string& first = options.coordinator.device;
  return options.devices.size() > 1 && wire::is_cuda(first) ? wire::kAllCuda
                                                            : std::string_view(first);
}

std::uint32_t default_pack_lanes(const DaemonOptions& options) {
  if (wire::is_cuda(options.coordinator.device)) return sched::kMaxLanes;
  return std::clamp(std::thread::hardware_concurrency(), 2U, sched::kMaxLanes);
}

host::RowOptions row_options(const DaemonOptions& options) {
  return {.least_slice = options.coordinator.min_quantum,
          .most_slice = options.coordinator.max_wait,
          .switch_loss = options.coordinator.switch_loss,
          .policy = options.coordinator.policy,
          .class_floor = options.coordinator.class_floor,
          .users = options.coordinator.users};
}

// The host tier is given out in pieces, so the rest of a piece is left away. Without a folder for
// files everything is RAM.
HostBytes host_budgets(const DaemonOptions& options) {
  const Bytes in_ram = options.coordinator.spill_dir.empty()
                           ? options.host_budget
                           : options.host_ram_budget.value_or(Bytes{0});
  return {round_down(in_ram, wire::kHostPieceBytes),
          round_down(options.host_budget - in_ram, wire::kHostPieceBytes)};
}

const char* daemon_version() { return GS_VERSION; }

// In the order that the top of this file gives. --help and --version end it at once, before a file
// is read.
Result<ParsedCommandLine> parse_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  ParsedCommandLine parsed;
  auto text = read_arguments(arguments, line);
  if (!text) return fail(text.error());
  if (!text->empty()) {
    parsed.text = std::move(*text);
    return parsed;
  }
  DaemonOptions& options = parsed.options;
  if (Status status = apply_given(line, true, options); !status.ok()) return fail(status);
  if (!options.devices.empty()) options.coordinator.device = options.devices.front().name;
  if (Status status = read_files(line, options); !status.ok()) return fail(status);
  if (Status status = choose_devices(line, options); !status.ok()) return fail(status);
  if (Status status = choose_socket(options); !status.ok()) return fail(status);
  const auto is_given = [&line](const Setting& setting) { return line.given.contains(&setting); };
  if (Status status = apply_environment(is_given, options); !status.ok()) return fail(status);
  if (Status status = apply_given(line, false, options); !status.ok()) return fail(status);
  options.daemonize = line.daemonize;
  if (Status status = check_arbiter(line, options); !status.ok()) return fail(status);
  if (!options.listen.empty()) return parsed;
  if (options.accounts_folder.empty()) options.accounts_folder = default_accounts_folder();
  if (options.accounts_folder == "none") options.accounts_folder.clear();
  if (Status status = fill_in_sizes(options); !status.ok()) return fail(status);
  if (Status status = check_host_budgets(options); !status.ok()) return fail(status);
  if (options.is_for_others()) make_users_safe(::geteuid(), options.coordinator.users);
  return parsed;
}

}  // namespace gpushare::daemon
