// The named sockets of this network namespace that are no files, as the kernel lists them.
//
// Which problem it solves: anybody can give a socket any such name, and /proc/net/unix prints it as
// it is, line breaks included, without its owner. The kernel's own answer has both, see
// sock_diag(7).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace gpushare::ipc {

struct AbstractSocket {
  std::string name;         // without the 0 that it begins with; any bytes
  std::uint32_t inode = 0;  // as links of /proc/PID/fd name it
  std::uint32_t uid = 0;    // who made it
};

// errors: kUnavailable where the kernel has no such list, kIo.
Result<std::vector<AbstractSocket>> list_abstract_sockets();

}  // namespace gpushare::ipc
