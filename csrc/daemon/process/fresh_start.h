// What a service must not inherit from the process that has started it.
#pragma once

namespace gpushare::daemon {

// Any process may have started this one, so its signal mask and umask are not ours.
void forget_parent();
// A job costs five descriptors; the usual soft limit of 1024 is for programs that use select().
void allow_many_descriptors();

}  // namespace gpushare::daemon
