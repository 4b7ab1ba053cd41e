// From options to a served socket and back: folder, lock, background, log, signals, loop.
#pragma once

#include "csrc/daemon/config/options.h"

namespace gpushare::daemon {

// The process' exit code. With `daemonize` the first process never returns from here unless it
// failed or found another instance that serves.
int run(DaemonOptions options);

}  // namespace gpushare::daemon
