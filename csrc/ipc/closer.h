// Closes descriptors that a peer can make slow to close, on a thread of its own.
//
// Which problem it solves: close() of a socket that lingers, or of a file of a file system that its
// user serves, waits as long as the sender likes.
#pragma once

#include <vector>

#include "csrc/base/unique_fd.h"

namespace gpushare::ipc {

// Returns at once. Any thread.
void close_elsewhere(std::vector<UniqueFd> fds);

}  // namespace gpushare::ipc
