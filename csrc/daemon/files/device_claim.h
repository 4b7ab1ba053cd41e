// Says to other coordinators of this machine that this one has a device: two of them, with
// different sockets, would each give away all of it.
//
// A name in the kernel's table of sockets, which ends with the process and needs no folder that
// users share. It holds nobody off: private coordinators beside each other are right for tests and
// demos, so who is second warns, and only refuses where it was told so. Anybody may take any such
// name, so it counts only where the kernel says that our user has made it, or where it is a
// service's, whose socket only it could have made. Of others it is said that they say so. It is
// seen inside one network namespace only.
//
// It is also how a coordinator is found whose socket or folder has gone (a logout): it still has
// its claim, for the socket that is to be made again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/ipc/abstract_sockets.h"

namespace gpushare::daemon {

struct OtherCoordinator {
  std::int32_t pid = 0;
  // The path where it listens, if it is one of ours. The end may be missing where the path is long.
  std::string socket;
  // The user, if it is another one. That process may be a coordinator, or only say so.
  std::optional<std::uint32_t> stranger;
  bool operator==(const OtherCoordinator&) const = default;
};

// Holds the claim while it is open. errors: kIo.
Result<UniqueFd> claim_device(const std::string& device, const std::string& socket_path);
// The coordinators of other processes: ours, then strangers, each in the order of pids; eight at
// most.
std::vector<OtherCoordinator> find_other_coordinators(const std::string& device);
// Those that such sockets claim to be. `root` stands before /proc; empty but in tests.
std::vector<OtherCoordinator> coordinators_among(const std::vector<ipc::AbstractSocket>& sockets,
                                                 const std::string& device,
                                                 const std::string& root = "");
// "another coordinator, pid 7, socket /run/sock, has this device (cpu)".
std::string warning_text(const OtherCoordinator& other, const std::string& device);

// Ours that has this device and listens, or should listen, at this socket. A coordinator with other
// mounts (another container) has another file at that path, and is not meant.
std::optional<OtherCoordinator> find_of_socket(const std::string& device,
                                               const std::string& socket_path);
// Has the coordinator of this pidfd look for its socket, and make it again. One that is ending does
// not. errors: kIo.
Status ask_to_restore(int process);
extern const int kRestoreSignal;

}  // namespace gpushare::daemon
