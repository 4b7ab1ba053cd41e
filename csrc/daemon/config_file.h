// Reads the settings of one TOML file into the options.
//
// The file is shared with the jobs' side, which has keys of its own: a table we do not know is
// theirs. An unknown key in a table of ours becomes a warning, a bad value an error.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/daemon/options.h"

namespace gpushare::daemon {

// errors: kInvalidArgument naming file, key, value and what is allowed, or the syntax error's line.
Status read_config_text(const std::string& text, const std::string& path, DaemonOptions& options);
// A file that is not there is an error only if `must_exist`. errors: as above, kIo.
Status read_config_file(const std::string& path, bool must_exist, DaemonOptions& options);

}  // namespace gpushare::daemon
