// Starting the coordinator's program from inside a user's process.
//
// The program puts itself into the background (--daemonize) and exits with 0 once its socket
// listens, or another instance's does; so waiting for it leaves no zombie. It inherits nothing:
// descriptors 0 and 1 are /dev/null, 2 is a pipe for the text of an error, all others are closed,
// no signal is blocked or ignored, and it has a session of its own, so that Ctrl-C in the terminal
// does not reach it.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::client {

// errors: kUnavailable with the program, how it ended and what it said on stderr. A program that
// has not ended after `timeout` is killed.
Status start_coordinator(const std::string& program,
                         const std::string& socket_path,
                         const std::vector<std::string>& more_args,
                         Nanos timeout);

}  // namespace gpushare::client
