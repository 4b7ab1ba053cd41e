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

// Connects to the listener at `path`. If the listener's queue is full, waits up to `wait` for a
// place, or until a signal comes. errors: kUnavailable if nobody listens there (absent or refused),
// kDeadlineExceeded if the queue stayed full, kIo otherwise (permission denied...), naming the
// path.
Result<UniqueFd> connect_to(const std::string& path, Nanos wait = Nanos{0});
// Binds and listens, replacing a dead socket file. `mode` as in chmod; the file belongs to `group`,
// if one is given. errors: kIo.
Result<UniqueFd> listen_at(const std::string& path,
                           unsigned mode,
                           std::optional<std::uint32_t> group = std::nullopt);
// errors: kUnavailable when there is nobody to accept now, kIo.
Result<UniqueFd> accept_from(int listener);
// Makes the kernel refuse descriptors that those who connect here try to send (Linux 6.16). false:
// the kernel cannot. Then receive_bytes() has to refuse them, and a connection has to be closed
// elsewhere (closer.h), since its unread packets may hold some.
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
// Resets the count of an eventfd that a peer has too. Never waits, even if the peer has made the
// eventfd blocking.
void drain_event(int event);
// Waits until `socket` is readable. false: `timeout` has passed.
Result<bool> wait_readable(int socket, Nanos timeout);
Result<Credentials> peer_credentials(int socket);
// A pidfd of the process that made the connection. From Linux 6.5 on it is never one of a later
// process with the same number. Before, it is of whatever process has the number now. errors:
// kUnavailable (that process is gone), kIo.
Result<UniqueFd> open_peer_pidfd(int socket);
// errors: kUnavailable if there is no such process, kIo.
Result<UniqueFd> open_pidfd(std::int32_t pid);

}  // namespace gpushare::ipc
