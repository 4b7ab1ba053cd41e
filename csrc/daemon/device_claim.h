// Says to other coordinators of this machine that this one has a device: two of them, with
// different sockets, would each give away all of it.
//
// A name in the kernel's table of sockets, which ends with the process and needs no folder that
// users share. It holds nobody off: private coordinators beside each other are right for tests and
// demos, so who is second warns, and only refuses where it was told so. What it does not do: it is
// seen inside one network namespace only, and proves nothing against who lies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace gpushare::daemon {

struct OtherCoordinator {
  std::int32_t pid = 0;
  std::string socket;  // its end may be missing where it is long
  bool operator==(const OtherCoordinator&) const = default;
};

// Holds the claim while it is open. errors: kIo.
Result<UniqueFd> claim_device(const std::string& device, const std::string& socket_path);
// Of other processes, in the order of pids, eight at most. `root` stands before /proc; empty but in
// tests.
std::vector<OtherCoordinator> find_other_coordinators(const std::string& device,
                                                      const std::string& root = "");
// "another coordinator, pid 7, socket /run/sock, has this device (cpu)".
std::string warning_text(const OtherCoordinator& other, const std::string& device);

}  // namespace gpushare::daemon
