// SEQPACKET sockets of the local machine: message borders are kept, descriptors travel, the kernel
// says who the peer is. Non-blocking unless a timeout is given. Every descriptor closes on exec.
#pragma once

#include <cstdint>
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

// errors: kUnavailable if nobody listens there (absent or refused), kIo otherwise (permission
// denied...), naming the path.
Result<UniqueFd> connect_to(const std::string& path);
// Binds and listens, replacing a dead socket file. `mode` as in chmod. errors: kIo.
Result<UniqueFd> listen_at(const std::string& path, unsigned mode);
// errors: kUnavailable when there is nobody to accept now, kIo.
Result<UniqueFd> accept_from(int listener);
// At most kMaxFds descriptors. errors: kUnavailable (the peer is gone), kDeadlineExceeded (its
// buffer is full: non-blocking send would wait), kIo.
inline constexpr std::size_t kMaxFds = 4;
Status send_packet(int socket, std::string_view bytes, const std::vector<int>& fds = {});
// errors: kDeadlineExceeded when there is nothing now, kProtocol when it was longer than
// `max_bytes`, kIo.
Result<Packet> receive_packet(int socket, std::size_t max_bytes);
// Waits until `socket` is readable. false: `timeout` has passed.
Result<bool> wait_readable(int socket, Nanos timeout);
Result<Credentials> peer_credentials(int socket);
// errors: kUnavailable if there is no such process, kIo.
Result<UniqueFd> open_pidfd(std::int32_t pid);

}  // namespace gpushare::ipc
