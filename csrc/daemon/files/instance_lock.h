// The kernel lock that makes one coordinator of many that start at once.
//
// A lock of flock(2) on SOCKET.lock, held by an open descriptor: it survives fork, ends with the
// last process that has it, however that ends, and is never removed from disk (a removed file and a
// new one of the same name would be two locks).
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"

namespace gpushare::daemon {

std::string lock_path(const std::string& socket_path);
std::string state_path(const std::string& socket_path);

// errors: kUnavailable if another process holds it, kIo.
Result<UniqueFd> take_instance_lock(const std::string& socket_path);

// For one of several starters: the lock, or an invalid descriptor once another instance holds it
// and its socket accepts. errors: kDeadlineExceeded if neither happened within `timeout`, kIo.
Result<UniqueFd> take_lock_or_find_instance(const std::string& socket_path, Nanos timeout);

// Whether this lock is still that of the socket: its file may have been removed.
bool is_lock_of(int lock, const std::string& socket_path);

}  // namespace gpushare::daemon
