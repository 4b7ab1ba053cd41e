// Reads the settings of one TOML file into the options.
//
// The file is shared with the jobs' side, which reads the table [job] and checks it itself
// (python/gpushare/_settings/config_notes.py, which also looks for unknown keys, and may suggest
// others). Any other table that is not the coordinator's becomes a warning, and so does an unknown
// key, with the key that was probably meant; a bad value is an error. A number without quotes
// counts seconds where a time is expected; in quotes it needs its unit.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/daemon/config/options.h"

namespace gpushare::daemon {

// errors: kInvalidArgument naming file, key, value and what is allowed, or the syntax error's line.
Status read_config_text(const std::string& text, const std::string& path, DaemonOptions& options);
// A file that is not there is an error only if `must_exist`. errors: as above, kIo.
Status read_config_file(const std::string& path, bool must_exist, DaemonOptions& options);

}  // namespace gpushare::daemon
