// Decides whether a job believes that a process is its coordinator.
//
// Which problem it solves: a socket's path proves nothing. Where a user has no folder of his own
// for sockets, the path lies in /tmp, and anybody can make it first. Whoever listens there is told
// of a job's memory, hands it descriptors and says when it runs.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/status.h"

namespace gpushare::ipc {

// Whether the process that listens at `path`, to which `socket` is connected, may be a coordinator:
// it is of our own user or root, or of the user to whom root has given the socket's folder (that of
// a service: every folder above is root's, nobody else can write there, and none is a link). To be
// asked before anything is sent. errors: kFailedPrecondition, with what to do; kIo.
Status check_listener(int socket, const std::string& path);

// The same of who has made the socket, where nobody can be asked.
Status check_owner(const std::string& path);

// Whether a socket is there that this user has made, in a folder that root gave it.
bool is_of_service(const std::string& path, std::uint32_t uid);

}  // namespace gpushare::ipc
