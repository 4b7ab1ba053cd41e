// The GPUSHARE_* variables that set what an option of the command line sets too. A job or a command
// that starts a coordinator reads them itself and gives options. Whoever starts gpushared by hand,
// by a unit of systemd or by a script gets the same by this.
#pragma once

#include <functional>

#include "csrc/base/status.h"
#include "csrc/daemon/config/options.h"
#include "csrc/daemon/config/settings.h"

namespace gpushare::daemon {

// A variable of a setting that `is_given` on the command line is not read. errors:
// kInvalidArgument.
Status apply_environment(const std::function<bool(const Setting&)>& is_given,
                         DaemonOptions& options);

}  // namespace gpushare::daemon
