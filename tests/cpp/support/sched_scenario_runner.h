// Golden traces of the coordinator: a file of commands, and after each what the coordinator said.
//
//     # Two jobs take turns.                       a comment
//     options policy=rr capacity=1GiB              first command; all fields of CoordinatorOptions
//     at 1.5s                                      the time from now on
//     wanted job=1 need=100MiB live=20MiB
//       page 1 grant term=1 grant_n=0              expected: indented lines after the command
//
// Commands: hello register unregister need released consumed lane_changed explain wanted gave_up
// closed observed lost gone (fields as in messages.h; `job` is the connection, `of` a false number
// in the address; sizes and times with units), deadline, pid_gone pid=, status, fit, who job=,
// why job=, order n=, unmanaged pid= resident=, row job= until=. Every step also checks the
// coordinator's invariants. Rewriting keeps commands and comments, and replaces all that is
// indented.
#pragma once

#include <string>

#include "csrc/base/status.h"

namespace gpushare::sched::testing {

// errors: kInvalidArgument for a line it cannot read, with its number.
Result<std::string> rewrite_scenario(const std::string& text);

}  // namespace gpushare::sched::testing
