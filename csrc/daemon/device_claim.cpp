#include "csrc/daemon/device_claim.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/printable.h"

namespace gpushare::daemon {
namespace {

// They go into one message, among jobs.
constexpr std::size_t kMostNamed = 8;

// "gpushare-device cpu 77 /run/sock", in the kernel's table with an @ before it.
std::string prefix_of(const std::string& device) {
  return fmt::format("gpushare-device {} ", device);
}

}  // namespace

Result<UniqueFd> claim_device(const std::string& device, const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("{}{} {}", prefix_of(device), ::getpid(), socket_path);
  // The first byte stays 0: a name that is no file.
  const std::size_t size = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(&address.sun_path[1], name.data(), size);
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.is_valid()) return fail(errno_status("claim device " + device + ": socket"));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    return fail(errno_status("claim device " + device + ": bind"));
  }
  return fd;
}

std::vector<OtherCoordinator> find_other_coordinators(const std::string& device,
                                                      const std::string& root) {
  const std::string prefix = " @" + prefix_of(device);
  std::vector<OtherCoordinator> others;
  std::ifstream table(root + "/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    const std::size_t at = line.find(prefix);
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(line).substr(at + prefix.size());
    OtherCoordinator other;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), other.pid);
    const auto length = static_cast<std::size_t>(stop - rest.data());
    if (error != std::errc{} || other.pid == ::getpid() || length >= rest.size()) continue;
    other.socket = printable(rest.substr(length + 1));
    others.push_back(std::move(other));
  }
  std::sort(others.begin(), others.end(),
            [](const auto& a, const auto& b) { return a.pid < b.pid; });
  if (others.size() > kMostNamed) others.resize(kMostNamed);
  return others;
}

std::string warning_text(const OtherCoordinator& other, const std::string& device) {
  return fmt::format("another coordinator, pid {}, socket {}, has this device ({})", other.pid,
                     other.socket, device);
}

}  // namespace gpushare::daemon
