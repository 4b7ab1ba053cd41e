// Finds addresses and makes stream sockets. frame_stream.cpp has the frames.
//
// To look up a name may take seconds, so only look_up() does that. It is called at the start of a
// process, or on a thread of its own. listen_stream() and connect_stream() take numbers alone.
#include "csrc/ipc/stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "csrc/base/printable.h"

namespace gpushare::ipc {
namespace {

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr int kBacklog = 128;
constexpr std::size_t kLongestName = 253;

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
};

// The kernel's limit is looked at here, since its own error does not say how long a path may be.
Result<SocketAddress> unix_address(const std::string& path) {
  sockaddr_un named = {};
  named.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(named.sun_path)) {
    return fail(StatusCode::kInvalidArgument, fmt::format("socket path {}: must have 1 to {} B",
                                                          path, sizeof(named.sun_path) - 1));
  }
  std::memcpy(named.sun_path, path.data(), path.size());
  SocketAddress address;
  std::memcpy(&address.storage, &named, sizeof(named));
  address.size = sizeof(named);
  return address;
}

// `flags`: AI_NUMERICHOST where the host may not be a name. `turn`: which of several.
Result<SocketAddress> find(const StreamAddress& at, int flags, std::size_t turn = 0) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found);
  if (error != 0) {
    return fail(
        (flags & AI_NUMERICHOST) != 0 ? StatusCode::kInvalidArgument : StatusCode::kUnavailable,
        fmt::format("look up {}: {}", at.host, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::size_t num = 0;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next)
    ++num;
  const addrinfo* chosen = found;
  for (std::size_t i = 0; i < turn % num; ++i)
    chosen = chosen->ai_next;
  SocketAddress address;
  std::memcpy(&address.storage, chosen->ai_addr, chosen->ai_addrlen);
  address.size = chosen->ai_addrlen;
  return address;
}

Result<SocketAddress> socket_address(const StreamAddress& at) {
  return at.path.empty() ? find(at, AI_NUMERICHOST) : unix_address(at.path);
}

// Removes the socket of a process that has died. A process that lives answers there, and keeps it.
Status clear_path(const std::string& path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Status() : errno_status("listen at " + path);
  if (!S_ISSOCK(info.st_mode))
    return {StatusCode::kIo, "listen at " + path + ": a file that is no socket is in the way"};
  if (connect_stream({.path = path}))
    return {StatusCode::kIo, "listen at " + path + ": another process listens there"};
  return ::unlink(path.c_str()) == 0 ? Status() : errno_status("remove " + path);
}

}  // namespace

// What a person wrote in a file or an option. An IPv6 address has colons itself, so it stands in
// brackets and the last colon is the one before the port. A number that is too large for a port, or
// that is followed by anything, is refused by from_chars() or by where it stopped.
Result<StreamAddress> parse_stream_address(std::string_view text) {
  const auto refuse = [&text] {
    return fail(
        StatusCode::kInvalidArgument,
        fmt::format("bad address \"{}\"; allowed: tcp:HOST:PORT or unix:/PATH", printable(text)));
  };
  // White space and control characters, as the Python side has it.
  const auto may_not_be = [](char c) { return (c >= 0 && c <= ' ') || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), may_not_be)) return refuse();
  if (text.starts_with("unix:/")) {
    const std::string_view path = text.substr(5);
    if (path.size() < 2 || path.size() > 100 || path.back() == '/') return refuse();
    return StreamAddress{.path = std::string(path)};
  }
  if (!text.starts_with("tcp:")) return refuse();
  const std::string_view rest = text.substr(4);
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return refuse();
  std::string_view host = rest.substr(0, colon);
  const std::string_view digits = rest.substr(colon + 1);
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  const bool has_colon = host.find(':') != std::string_view::npos;
  if (host.empty() || host.size() > kLongestName || has_colon != is_bracketed) return refuse();
  StreamAddress address{.host = std::string(host)};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (error != std::errc{} || end != digits.data() + digits.size()) return refuse();
  return address;
}

std::string to_string(const StreamAddress& address) {
  if (!address.path.empty()) return "unix:" + address.path;
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return fmt::format("tcp:{}:{}", is_v6 ? "[" + address.host + "]" : address.host, address.port);
}

// The result is a number, which is passed on to listen_stream() or connect_stream(). A name may
// have several addresses: each new turn takes the next one, so that one that does not answer is
// tried once in a round.
Result<StreamAddress> look_up(const StreamAddress& address, std::size_t turn) {
  if (!address.path.empty()) return address;
  const auto found = find(address, 0, turn);
  if (!found) return fail(found.error());
  std::array<char, INET6_ADDRSTRLEN + 20> number{};
  const int error =
      ::getnameinfo(found->get(), found->size, number.data(), static_cast<socklen_t>(number.size()),
                    nullptr, 0, NI_NUMERICHOST);
  if (error != 0) return fail(StatusCode::kUnavailable, ::gai_strerror(error));
  return StreamAddress{.host = number.data(), .port = address.port};
}

// SO_REUSEADDR lets an arbiter that starts again have its port at once, though the kernel still
// remembers connections of the one before.
Result<UniqueFd> listen_stream(const StreamAddress& address) {
  const std::string what = "listen at " + to_string(address);
  const auto at = socket_address(address);
  if (!at) return fail(at.error());
  if (!address.path.empty()) {
    if (Status status = clear_path(address.path); !status.ok()) return fail(status);
  }
  UniqueFd fd(::socket(at->family(), kSocketFlags, 0));
  if (!fd.is_valid()) return fail(errno_status(what));
  const int on = 1;
  if (address.path.empty()) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // Nobody can connect before listen(), so the mode is right by then.
  if (::bind(fd.get(), at->get(), at->size) != 0 ||
      (!address.path.empty() && ::chmod(address.path.c_str(), 0600) != 0) ||
      ::listen(fd.get(), kBacklog) != 0)
    return fail(errno_status(what));
  return fd;
}

// Does not wait: EINPROGRESS says that the connection is being made. Errors that mean that nobody
// is there now are kUnavailable, so that callers can tell them from a mistake in the address.
Result<UniqueFd> connect_stream(const StreamAddress& address) {
  const std::string what = "connect to " + to_string(address);
  const auto at = socket_address(address);
  if (!at) return fail(at.error());
  UniqueFd fd(::socket(at->family(), kSocketFlags, 0));
  if (!fd.is_valid()) return fail(errno_status(what));
  if (::connect(fd.get(), at->get(), at->size) == 0 || errno == EINPROGRESS) return fd;
  const int error = errno;
  const Status status = errno_status(what);
  const bool is_nobody = error == ECONNREFUSED || error == ENOENT || error == ENETUNREACH ||
                         error == EHOSTUNREACH || error == EAGAIN;
  return fail(is_nobody ? Status(StatusCode::kUnavailable, status.message()) : status);
}

// 0 for a Unix socket, which has none.
Result<std::uint16_t> port_of(int listener) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return fail(errno_status("port of a socket"));
  if (name.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&name)->sin_port);
  if (name.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&name)->sin6_port);
  return std::uint16_t{0};
}

// For logs and refusals, so it never fails.
std::string peer_text(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  std::array<char, INET6_ADDRSTRLEN + 20> host{};
  std::array<char, 8> port{};
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return "nobody";
  if (name.ss_family == AF_UNIX) return "a process of this host";
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&name), size, host.data(),
                    static_cast<socklen_t>(host.size()), port.data(),
                    static_cast<socklen_t>(port.size()), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return fmt::format("{} port {}", host.data(), port.data());
}

}  // namespace gpushare::ipc
