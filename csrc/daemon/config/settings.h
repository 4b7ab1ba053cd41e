// The settings one by one: how each is called in a TOML file and on the command line, what it may
// be, and how its text becomes a value. One table, so that file and option cannot disagree.
#pragma once

#include <span>
#include <string>

#include "csrc/base/status.h"
#include "csrc/daemon/config/options.h"

namespace gpushare::daemon {

struct Setting {
  const char* key;      // "coordinator.policy"; nullptr: not in a file
  const char* option;   // "--policy"; nullptr: only in a file
  const char* allowed;  // for the error: "fair, rr or fifo"
  const char* help;
  // The unit of a plain number as an option's value, in ns (0: not a time). In a file a plain
  // number counts seconds.
  std::int64_t option_unit_ns;
  // false: not allowed. `unit` is what a plain number counts.
  bool (*apply)(DaemonOptions& options, const std::string& text, Nanos unit);
};

// The device says which of a file's settings are meant, so these options are applied before the
// files.
inline constexpr auto kDeviceOption = "--device";
inline constexpr auto kDevicesOption = "--devices";

std::span<const Setting> all_settings();
// nullptr if there is none.
const Setting* find_setting(const std::string& key);
// The one with this option: "--policy". pre: there is one.
const Setting* find_option(const std::string& option);

// `where` is "--policy" or a file's path. errors: kInvalidArgument.
Status apply_setting(const Setting& setting,
                     const std::string& text,
                     Nanos unit,
                     const std::string& where,
                     DaemonOptions& options);

// Says what is wrong with a setting's value, and what is allowed. `where` names it for whoever gave
// it: an option, a variable, or a file's place and key.
Status bad_value(const std::string& where, const std::string& text, const Setting& setting);

}  // namespace gpushare::daemon
