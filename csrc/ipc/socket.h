// SEQPACKET sockets of the local machine: message borders are kept, descriptors travel, the kernel
// says who the peer is. Non-blocking unless a timeout is given. Every descriptor closes on exec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"

namespace gpushare::ipc {

struct Credentials {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> fds;
  bool is_end = false;  // the peer has closed
};

// Waits so long where as many others wait to be let in as can, or until a signal.
// errors: kUnavailable if nobody listens there (absent or refused), kDeadlineExceeded if it was not
// let in, kIo otherwise (permission denied...), naming the path.
Result<UniqueFd> connect_to(const std::string& path, Nanos wait = Nanos{0});
// Binds and listens, replacing a dead socket file. `mode` as in chmod; the file belongs to `group`,
// if one is given. errors: kIo.
Result<UniqueFd> listen_at(const std::string& path,
                           unsigned mode,
                           std::optional<std::uint32_t> group = std::nullopt);
// errors: kUnavailable when there is nobody to accept now, kIo.
Result<UniqueFd> accept_from(int listener);
// Takes the right to send descriptors to it from whoever connects, where the kernel has that
// (Linux 6.16). false: it has not; then receive_bytes() has to see to them, and a connection is to
// be closed elsewhere (closer.h), since unread packets may hold some.
bool refuse_descriptors(int listener);
// At most kMaxFds descriptors. errors: kUnavailable (the peer is gone), kDeadlineExceeded (its
// buffer is full: non-blocking send would wait), kIo.
inline constexpr std::size_t kMaxFds = 4;
Status send_packet(int socket, std::string_view bytes, const std::vector<int>& fds = {});
// errors: kDeadlineExceeded when there is nothing now, kProtocol when it was longer than
// `max_bytes`, kIo.
Result<Packet> receive_packet(int socket, std::size_t max_bytes);
// From a peer that is not trusted: a packet with descriptors is kProtocol, too. They are never
// used, and are closed elsewhere.
Result<Packet> receive_bytes(int socket, std::size_t max_bytes);
// Takes the count of an eventfd that a peer has, too, and may have made blocking: never waits.
void drain_event(int event);
// Waits until `socket` is readable. false: `timeout` has passed.
Result<bool> wait_readable(int socket, Nanos timeout);
Result<Credentials> peer_credentials(int socket);
// Of the process that has made the connection, and of no later one of the same number (Linux 6.5;
// before, of whatever process has its number now). errors: kUnavailable (it is gone), kIo.
Result<UniqueFd> open_peer_pidfd(int socket);
// errors: kUnavailable if there is no such process, kIo.
Result<UniqueFd> open_pidfd(std::int32_t pid);

}  // namespace gpushare::ipc
