// A claim is a socket with an abstract name, which holds the device, the process's number and the
// socket's path. Anybody may take any such name, so a name is only a claim until it is checked.
//
// The checks of another process's claim come in this order. A process of that number exists and
// belongs to the user who made the name. If that user is us, the process must have the very socket
// open, since a number may be of another pid namespace. If it is another user, the named socket
// must be a service's, in a folder that root gave it. Everything else is a stranger, of whom only
// process and user are shown.
//
// What may go wrong: the kernel lists no sockets. Then other coordinators are not seen, and the log
// says so.
#include "csrc/daemon/files/device_claim.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/log.h"
#include "csrc/base/printable.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/daemon/config/paths.h"
#include "csrc/ipc/abstract_sockets.h"
#include "csrc/ipc/peer_trust.h"
#include "csrc/wire/device_name.h"

namespace gpushare::daemon {
namespace {

// At most so many are named: they go into one message, among jobs.
constexpr std::size_t kMostNamed = 8;
constexpr std::size_t kLongestName = sizeof(sockaddr_un::sun_path) - 1;

// The name is "gpushare-coordinator cpu 77 /run/sock"; this is the part before the number.
std::string prefix_of(const std::string& device) {
  return fmt::format("gpushare-coordinator {} ", device);
}

std::string name_of(const std::string& device, std::int32_t pid, const std::string& socket_path) {
  return fmt::format("{}{} {}", prefix_of(device), pid, socket_path);
}

// A name that was taken apart. Nothing of it is believed yet but who made the socket.
struct Claim {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t inode = 0;
  std::string socket;
};

std::optional<Claim> parse_claim(const ipc::AbstractSocket& found, const std::string& prefix) {
  if (!found.name.starts_with(prefix)) return std::nullopt;
  Claim claim{.pid = 0, .uid = found.uid, .inode = found.inode, .socket = ""};
  const std::string_view rest = std::string_view(found.name).substr(prefix.size());
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), claim.pid);
  const auto length = static_cast<std::size_t>(stop - rest.data());
  if (error != std::errc{} || length >= rest.size()) return std::nullopt;
  claim.socket = rest.substr(length + 1);
  return claim;
}

// Whether this process has the socket open. The number in a claim is one of the claimant's own pid
// namespace; here it may be another process's.
bool has_open(const std::string& process, std::uint32_t inode) {
  const std::string wanted = fmt::format("socket:[{}]", inode);
  std::error_code error;
  std::filesystem::directory_iterator fds(process + "/fd", error);
  for (; !error && fds != std::filesystem::directory_iterator(); fds.increment(error)) {
    std::error_code gone;
    if (std::filesystem::read_symlink(fds->path(), gone) == wanted) return true;
  }
  return false;
}

// Whether the process has other mounts than this one, as in another container. The same path is
// then another file there. A process that may not be looked at counts as one of here.
bool has_other_mounts(std::int32_t pid) {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/ns/mnt", error);
  if (error) return false;
  const auto its = std::filesystem::read_symlink(fmt::format("/proc/{}/ns/mnt", pid), error);
  return !error && its != own;
}

// The coordinator behind a claim. Empty if the claim names no process of its user.
std::optional<OtherCoordinator> check_claim(const Claim& claim,
                                            const std::string& device,
                                            const std::string& root) {
  const std::string process = fmt::format("{}/proc/{}", root, claim.pid);
  struct stat info = {};
  if (::stat(process.c_str(), &info) != 0 || info.st_uid != claim.uid) return std::nullopt;
  const bool is_own = claim.uid == ::geteuid();
  if (is_own && !has_open(process, claim.inode)) return std::nullopt;
  // The name is compared first: no path is looked at only because a stranger has named it.
  const auto name = std::filesystem::path(claim.socket).filename();
  const bool is_named_so =
      name == socket_name(device) || (wire::is_cuda(device) && name == socket_name(wire::kAllCuda));
  const bool is_of_service = !is_own && is_named_so && ipc::is_of_service(claim.socket, claim.uid);
  if (is_own || is_of_service) return OtherCoordinator{claim.pid, claim.socket, std::nullopt};
  return OtherCoordinator{claim.pid, "", claim.uid};
}

}  // namespace

// The pid makes the name one of its own, so two coordinators never compete for it.
Result<UniqueFd> claim_device(const std::string& device, const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = name_of(device, ::getpid(), socket_path);
  // The first byte stays 0: a name that is no file. A longer name is cut.
  const std::size_t size = std::min(name.size(), kLongestName);
  std::memcpy(&address.sun_path[1], name.data(), size);
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.is_valid()) return fail(errno_status("claim device " + device + ": socket"));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return fail(errno_status("claim device " + device + ": bind"));
  }
  return fd;
}

std::vector<OtherCoordinator> find_other_coordinators(const std::string& device) {
  const auto sockets = ipc::list_abstract_sockets();
  if (sockets) return coordinators_among(*sockets, device);
  log::warn("other coordinators of this device cannot be seen: {}", sockets.error().message());
  return {};
}

// In a fixed order and of limited number, so that a user who makes thousands of such sockets hides
// no coordinator of ours: ours come first.
std::vector<OtherCoordinator> coordinators_among(const std::vector<ipc::AbstractSocket>& sockets,
                                                 const std::string& device,
                                                 const std::string& root) {
  const std::string prefix = prefix_of(device);
  std::vector<OtherCoordinator> others;
  for (const ipc::AbstractSocket& socket : sockets) {
    const auto claim = parse_claim(socket, prefix);
    if (!claim || claim->pid == ::getpid()) continue;
    if (auto other = check_claim(*claim, device, root)) others.push_back(*std::move(other));
  }
  std::sort(others.begin(), others.end(), [](const auto& a, const auto& b) {
    return std::pair(a.stranger.has_value(), a.pid) < std::pair(b.stranger.has_value(), b.pid);
  });
  if (others.size() > kMostNamed) others.resize(kMostNamed);
  return others;
}

std::string warning_text(const OtherCoordinator& other, const std::string& device) {
  if (other.stranger) {
    return fmt::format("process {} of user {} says that it is a coordinator of this device ({})",
                       other.pid, *other.stranger, device);
  }
  return fmt::format("another coordinator, pid {}, socket {}, has this device ({})", other.pid,
                     printable(other.socket), device);
}

const int kRestoreSignal = SIGUSR1;

// The first one that fits. There is one at most: the socket's lock sees to that.
std::optional<OtherCoordinator> find_of_socket(const std::string& device,
                                               const std::string& socket_path) {
  for (OtherCoordinator& other : find_other_coordinators(device)) {
    // A claim has room for only so much of a path, so a cut path counts if the rest agrees.
    const bool is_whole = other.socket == socket_path;
    const bool is_cut = name_of(device, other.pid, socket_path).size() > kLongestName;
    const bool is_same =
        is_whole || (is_cut && !other.socket.empty() && socket_path.starts_with(other.socket));
    if (!other.stranger && is_same && !has_other_mounts(other.pid)) return std::move(other);
  }
  return std::nullopt;
}

// Sent by pidfd, so it cannot reach a later process of the same number.
Status ask_to_restore(int process) {
  const auto done = ::syscall(SYS_pidfd_send_signal, process, kRestoreSignal, nullptr, 0);
  if (done == 0 || errno == ESRCH) return {};
  return errno_status("ask the coordinator for its socket");
}

}  // namespace gpushare::daemon
