// The table of all settings (kSettings). A row has the key in a file, the option of the command
// line, the text of what is allowed, the help, and the function that checks a value and takes it
// over. That function is the only place that knows the range, and it returns false for a value
// outside.
//
// A setting may be in a file only, or on the command line only. Sizes of a kind of device
// (device.cpu.capacity) are checked in any case, and taken only by a coordinator of such a device.
#include "csrc/daemon/config/settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/log.h"
#include "csrc/base/printable.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/device_list.h"
#include "csrc/daemon/config/paths.h"
#include "csrc/daemon/config/setting_values.h"
#include "csrc/daemon/config/user_settings.h"
#include "csrc/ipc/stream.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/policies/policy.h"
#include "csrc/wire/device_name.h"

namespace gpushare::daemon {
namespace {

using Options = DaemonOptions;
using Text = const std::string&;

// A chunk: with less no job could have any memory.
constexpr Bytes kSmallestDevice = mib(2);
// With less a chunk of 2 MiB would be on its way for more than two seconds.
constexpr Bytes kSmallestTransfer = mib(1);
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

// These functions take a value over and return true, or change nothing that counts and return
// false.
bool set_text(std::string& field, Text text) {
  field = text;
  return true;
}

// `unit` is that of a number without one: an option that ends in -ms counts in ms.
bool set_time(Nanos& field, Text text, Nanos unit, Nanos least) {
  const auto time = parse_time(text, unit);
  if (!time || *time < least) return false;
  field = *time;
  return true;
}

// `field` is Bytes, or they are optional.
template <typename Field>
bool set_bytes(Field& field, Text text, Bytes least) {
  const Bytes size = parse_bytes(text);
  if (size < least) return false;
  field = size;
  return true;
}

// A coordinator that never ends by itself is for a service, whose manager ends it.
bool set_linger(Options& options, Text text, Nanos unit) {
  if (text == "never") {
    options.linger.reset();
    return true;
  }
  options.linger.emplace();
  return set_time(*options.linger, text, unit, Nanos{0});
}

// parse_level() takes a text that it does not know for "warn", so that result counts only for this
// very text.
bool set_log_level(Options& options, Text text) {
  options.log_level = log::parse_level(text);
  return options.log_level != log::Level::kWarn || text == "warn";
}

bool set_loss(Options& options, Text text) {
  const auto loss = parse_number(text);
  if (!loss || *loss <= 0.0 || *loss > 0.5) return false;
  options.coordinator.switch_loss = *loss;
  return true;
}

bool set_class_floor(Options& options, Text text) {
  const auto floor = parse_number(text);
  if (!floor || *floor < 0.0 || *floor > 0.3) return false;
  options.coordinator.class_floor = *floor;
  return true;
}

// Read as a number with a fraction, so that "1.5" is refused instead of cut.
bool set_num_lanes(Options& options, Text text) {
  static_assert(sched::kMaxLanes == 16, "the setting's text says so");
  const auto num = parse_number(text);
  if (!num || *num < 1 || *num > sched::kMaxLanes || *num != std::floor(*num)) return false;
  options.num_lanes = static_cast<std::uint32_t>(*num);
  return true;
}

// `field` is false for every text but "yes"; of the others only "no" is allowed.
bool set_yes(bool& field, Text text) {
  field = text == "yes";
  return field || text == "no";
}

bool set_mode(Options& options, Text text) {
  const auto mode = parse_mode(text);
  if (!mode) return false;
  options.socket_mode = *mode;
  return true;
}

// Where an arbiter listens; "none" undoes what a file says.
bool set_arbiter(Options& options, Text text) {
  options.arbiter = text == "none" ? "" : text;
  return options.arbiter.empty() || ipc::parse_stream_address(text).has_value();
}

// A file's devices are replaced as a whole.
bool set_devices(Options& options, Text text) {
  auto devices = parse_devices(text, kSmallestDevice);
  if (!devices) return false;
  options.devices = *std::move(devices);
  return true;
}

// In a file, of a kind of device: checked, and taken if this coordinator has such a one.
template <typename Field>
bool set_size_of(bool is_cuda, Options& options, Field& field, Text text, Bytes least) {
  Bytes size;
  if (!set_bytes(size, text, least)) return false;
  const std::string& device = options.coordinator.device;
  if ((wire::is_cuda(device) || device == wire::kAllCuda) == is_cuda) field = size;
  return true;
}

constexpr const char* kTime = "a time above 0, like \"250ms\" or \"10 s\"";
constexpr const char* kTimeOrZero = "a time, like \"250ms\" or \"10 s\"";
constexpr const char* kReserve = "a size like \"64MiB\"";
constexpr const char* kSize = "a size of at least 2 MiB, like \"2GiB\"";

// In the order in which --help lists them.
constexpr std::array kSettings{
    // Where it listens, and for whom.
    Setting{"coordinator.socket", "--socket", "an absolute path of at most 100 bytes",
            "where to listen", 0,
            [](Options& o, Text t, Nanos) {
              return (is_socket_path(t) || t == "none") && set_text(o.socket, t);
            }},
    Setting{"coordinator.socket_mode", "--mode", "an octal mode like \"0600\" or \"0660\"",
            "permissions of the socket", 0,
            [](Options& o, Text t, Nanos) { return set_mode(o, t); }},
    Setting{"coordinator.socket_group", "--socket-group",
            "a group of this machine, by name or number",
            "to whom the socket belongs, and its folder if that is made", 0,
            [](Options& o, Text t, Nanos) {
              o.socket_group = find_gid(t);
              return o.socket_group.has_value();
            }},
    // With its device's name the socket is where jobs look for it.
    Setting{nullptr, "--socket-folder", "an absolute path of at most 50 bytes",
            "where to listen, at a socket named after the device", 0,
            [](Options& o, Text t, Nanos) {
              constexpr std::size_t kLongest = 50;
              return t.size() <= kLongest && is_socket_path(t) &&
                     set_text(o.socket, t + "/" + socket_name(name_for_files(o)));
            }},
    // Which devices it shares, and how much of their memory.
    Setting{nullptr, kDeviceOption, wire::kDeviceNames,
            "the device to share; cuda: the CUDA devices of GPUSHARE_DEVICES", 0,
            [](Options& o, Text t, Nanos) {
              return (wire::is_device_name(t) || t == wire::kAllCuda) &&
                     set_text(o.coordinator.device, t);
            }},
    Setting{"coordinator.devices", kDevicesOption,
            "devices with their sizes, like \"cpu:0=2GiB,cpu:1=2GiB\": each at least 2 MiB, none "
            "twice, 64 at most; CUDA devices alone may leave the sizes out",
            "several devices to share; jobs that name none are placed on one of them", 0,
            [](Options& o, Text t, Nanos) { return set_devices(o, t); }},
    Setting{nullptr, "--exclusive", "yes or no",
            "refuse to start while another coordinator has the device (default: yes for cuda, no "
            "for cpu)",
            0, [](Options& o, Text t, Nanos) { return set_yes(o.exclusive.emplace(), t); }},
    Setting{nullptr, "--capacity", kSize,
            "the device's memory (default: for cpu half of the machine's, for cuda none)", 0,
            [](Options& o, Text t, Nanos) {
              o.reserve.reset();  // a file's is of the capacity there
              return set_bytes(o.capacity, t, kSmallestDevice);
            }},
    Setting{"device.cpu.capacity", nullptr, kSize, "", 0,
            [](Options& o, Text t, Nanos) {
              return set_size_of(false, o, o.capacity, t, kSmallestDevice);
            }},
    Setting{"device.cuda.capacity", nullptr, kSize, "", 0,
            [](Options& o, Text t, Nanos) {
              return set_size_of(true, o, o.capacity, t, kSmallestDevice);
            }},
    Setting{nullptr, "--device-memory", kSize,
            "all of a cuda device's memory, which is the capacity where none is set; of several "
            "devices that of the largest, whose sizes are all of their memory then",
            0, [](Options& o, Text t, Nanos) { return set_bytes(o.device_memory, t, Bytes{1}); }},
    Setting{nullptr, "--reserve", kReserve,
            "of the capacity, kept from jobs (default: none; of all of a cuda device's memory what "
            "drivers and libraries take beside jobs, 1.5 GiB of most devices)",
            0, [](Options& o, Text t, Nanos) { return set_bytes(o.reserve, t, Bytes{0}); }},
    Setting{
        "device.cpu.reserve", nullptr, kReserve, "", 0,
        [](Options& o, Text t, Nanos) { return set_size_of(false, o, o.reserve, t, Bytes{0}); }},
    Setting{"device.cuda.reserve", nullptr, kReserve, "", 0,
            [](Options& o, Text t, Nanos) { return set_size_of(true, o, o.reserve, t, Bytes{0}); }},
    // The policy, and how long turns are.
    Setting{"coordinator.policy", "--policy",
            "fair, rr, fifo, srtf, priority, deadline, pack, srtf+pack or deadline+pack",
            "whom to serve next", 0,
            [](Options& o, Text t, Nanos) {
              return sched::make_policy(t).has_value() && set_text(o.coordinator.policy, t);
            }},
    Setting{"coordinator.min_quantum", "--min-quantum-ms", kTimeOrZero, "the shortest lease", kMs,
            [](Options& o, Text t, Nanos u) {
              return set_time(o.coordinator.min_quantum, t, u, Nanos{0});
            }},
    Setting{"coordinator.max_wait", "--max-wait-ms", kTime, "the ceiling on waiting", kMs,
            [](Options& o, Text t, Nanos u) {
              return set_time(o.coordinator.max_wait, t, u, Nanos{1});
            }},
    Setting{"coordinator.switch_loss", "--switch-loss", "a number above 0, at most 0.5",
            "the allowed loss by switching, as a fraction", 0,
            [](Options& o, Text t, Nanos) { return set_loss(o, t); }},
    Setting{"coordinator.class_floor", "--class-floor", "a number from 0 to 0.3",
            "the part of the time of each class that waits below another, and of overdue jobs", 0,
            [](Options& o, Text t, Nanos) { return set_class_floor(o, t); }},
    Setting{"coordinator.memory_wait", "--memory-wait-s", kTimeOrZero,
            "how long to wait for room before out of memory", kSecond,
            [](Options& o, Text t, Nanos u) {
              return set_time(o.coordinator.memory_wait, t, u, Nanos{0});
            }},
    Setting{"coordinator.gap_poll", "--gap-poll-ms", kTime,
            "how often a holder's gap is looked at while others wait", kMs,
            [](Options& o, Text t, Nanos u) {
              return set_time(o.coordinator.gap_poll, t, u, Nanos{1});
            }},
    // What runs or moves at the same time.
    Setting{"coordinator.num_lanes", "--num-lanes", "a whole number from 1 to 16",
            "how many jobs may run at the same time, as far as they fit side by side (default: 1; "
            "under "
            "pack the number of cores, on CUDA 16)",
            0, [](Options& o, Text t, Nanos) { return set_num_lanes(o, t); }},
    Setting{"coordinator.lanes", "--lanes", "on or off",
            "whether jobs of one user share memory that is free between iterations (default: on)",
            0,
            [](Options& o, Text t, Nanos) {
              o.lanes = t == "on";
              return o.lanes || t == "off";
            }},
    Setting{"coordinator.transfer_budget", "--transfer-budget",
            "0, or a size of at least 1 MiB, like \"500MiB\"",
            "bytes a second that may move while another job computes, and that nobody waits for "
            "(default: 0, no limit)",
            0,
            [](Options& o, Text t, Nanos) {
              return set_bytes(o.coordinator.transfer_budget, t, Bytes{0}) &&
                     (o.coordinator.transfer_budget == Bytes{0} ||
                      o.coordinator.transfer_budget >= kSmallestTransfer);
            }},
    // The coordinator itself, and gangs over several hosts.
    Setting{"coordinator.linger", "--linger-s", "a time, or \"never\"",
            "how long to stay after the last job", kSecond, set_linger},
    Setting{"coordinator.arbiter", "--arbiter-address", "tcp:HOST:PORT, unix:/PATH, or none",
            "where the arbiter listens that gives rows to gangs over several hosts", 0,
            [](Options& o, Text t, Nanos) { return set_arbiter(o, t); }},
    Setting{"coordinator.arbiter_token_file", "--token-file",
            "an absolute path of printable characters",
            "the file of the secret that hosts and their arbiter have in common", 0,
            [](Options& o, Text t, Nanos) {
              return t.starts_with('/') && printable(t) == t && set_text(o.token_file, t);
            }},
    // Where spilled memory goes.
    Setting{"host.spill_dir", "--spill-dir",
            "an absolute path of printable characters, or empty for RAM",
            "a folder where spilled memory goes", 0,
            [](Options& o, Text t, Nanos) {
              const bool is_path = t.empty() || (t.front() == '/' && printable(t) == t);
              return is_path && set_text(o.coordinator.spill_dir, t);
            }},
    Setting{"host.budget", "--host-budget", kSize,
            "the most that may be spilled (default: half of the machine's memory)", 0,
            [](Options& o, Text t, Nanos) { return set_bytes(o.host_budget, t, mib(2)); }},
    Setting{"host.ram_budget", "--host-ram-budget", "a size like \"4GiB\"",
            "of it, in RAM before the spill folder is used (default: none)", 0,
            [](Options& o, Text t, Nanos) {
              return set_bytes(o.host_ram_budget.emplace(), t, Bytes{0});
            }},
    // Accounts of finished jobs, and the log.
    Setting{"accounts.folder", "--accounts-folder", "an absolute path, or \"none\"",
            "where the accounts of finished jobs are kept (default: gpushare/accounts in "
            "$XDG_STATE_HOME or ~/.local/state); none: nowhere",
            0,
            [](Options& o, Text t, Nanos) {
              const bool is_path = t == "none" || (t.starts_with('/') && printable(t) == t);
              return is_path && set_text(o.accounts_folder, t);
            }},
    Setting{"accounts.budget", "--accounts-budget", "a size of at least 1 MiB, like \"64MiB\"",
            "the most that the accounts of this device and host take; the oldest go (default: 64 "
            "MiB)",
            0,
            [](Options& o, Text t, Nanos) {
              return set_bytes(o.accounts_budget, t, kLeastAccountsBudget);
            }},
    Setting{"log.level", "--log-level", "debug, info, warn, error or off", "how much to log", 0,
            [](Options& o, Text t, Nanos) { return set_log_level(o, t); }},
    Setting{"log.file", "--log-file", "a path", "where to log (default: stderr)", 0,
            [](Options& o, Text t, Nanos) { return !t.empty() && set_text(o.log_file, t); }},
};

}  // namespace

std::span<const Setting> all_settings() { return kSettings; }

const Setting* find_setting(const std::string& key) {
  for (const Setting& setting : kSettings) {
    if (setting.key != nullptr && key == setting.key) return &setting;
  }
  return nullptr;
}

const Setting* find_option(const std::string& option) {
  return std::find_if(kSettings.begin(), kSettings.end(), [&option](const Setting& setting) {
    return setting.option != nullptr && option == setting.option;
  });
}

// The error names the option as the user wrote it, or the file's place and the key.
Status apply_setting(const Setting& setting,
                     const std::string& text,
                     Nanos unit,
                     const std::string& where,
                     DaemonOptions& options) {
  if (setting.apply(options, text, unit)) return {};
  const bool is_in_file = setting.option == nullptr || where != setting.option;
  return bad_value(is_in_file ? where + ": " + setting.key : where, text, setting);
}

Status bad_value(const std::string& where, const std::string& text, const Setting& setting) {
  return {StatusCode::kInvalidArgument,
          fmt::format("{}: bad value \"{}\"; allowed: {}", where, text, setting.allowed)};
}

}  // namespace gpushare::daemon
