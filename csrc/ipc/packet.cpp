// Packets with descriptors over a SEQPACKET socket, and what a peer may do with such descriptors.
//
// Sending is non-blocking: a packet is sent whole, or the caller learns that the peer's buffer is
// full. Receiving reads one packet with all its descriptors. The caller decides by the function how
// far the peer is trusted. receive_packet() hands the descriptors on; jobs use it towards their
// coordinator. receive_bytes() refuses a packet that has any; the coordinator uses it towards jobs.
//
// What may go wrong: a peer can pass descriptors whose close() takes as long as it likes, and can
// pass many of them. So there is room for all that a packet can have, each is owned at once, and
// those of an untrusted peer are closed on another thread (closer.h).
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/ipc/closer.h"
#include "csrc/ipc/socket.h"

namespace gpushare::ipc {
namespace {

// The most that one packet can carry (SCM_MAX_FD in the kernel). Descriptors that do not fit into
// our buffer would be closed by the kernel on this thread, which may have to wait for that.
constexpr std::size_t kMostFdsOfPacket = 253;

struct alignas(cmsghdr) ControlBuffer {
  std::array<char, CMSG_SPACE(sizeof(int) * kMostFdsOfPacket)> bytes = {};
};

void attach_fds(msghdr& header, ControlBuffer& control, const std::vector<int>& fds) {
  const std::size_t length = sizeof(int) * fds.size();
  header.msg_control = control.bytes.data();
  header.msg_controllen = CMSG_SPACE(length);
  cmsghdr* entry = CMSG_FIRSTHDR(&header);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(length);
  std::memcpy(CMSG_DATA(entry), fds.data(), length);
}

// Takes ownership of every descriptor that came: also those of a packet that is then refused, so
// that a peer cannot fill our descriptor table.
std::vector<UniqueFd> take_fds(msghdr& header) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* entry = CMSG_FIRSTHDR(&header); entry != nullptr;
       entry = CMSG_NXTHDR(&header, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(entry) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

// errno of a failed send, as one of three codes: the peer is gone, its buffer is full, or another
// error.
Status send_status(std::size_t size) {
  const int error = errno;
  Status status = errno_status(fmt::format("send of {} B", size));
  if (error == EPIPE || error == ECONNRESET || error == ENOTCONN) {
    return {StatusCode::kUnavailable, status.message()};
  }
  if (error == EAGAIN || error == ENOBUFS) {
    return {StatusCode::kDeadlineExceeded, status.message()};
  }
  return status;
}

}  // namespace

// Never waits, and never raises SIGPIPE.
Status send_packet(int socket, std::string_view bytes, const std::vector<int>& fds) {
  GS_CHECK(fds.size() <= kMaxFds, "{} descriptors", fds.size());
  // A receiver cannot tell an empty packet from the end of the connection.
  GS_CHECK(!bytes.empty(), "an empty packet");
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  ControlBuffer control;
  if (!fds.empty()) attach_fds(header, control, fds);
  while (true) {
    // A SEQPACKET is sent whole or not at all.
    if (::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
    if (errno != EINTR) return send_status(bytes.size());
  }
}

namespace {

struct Received {
  Packet packet;
  Status status;
};

// Receives one packet. The descriptors are returned even if the packet is refused, so that the
// caller decides on which thread they are closed. MSG_TRUNC says that the packet was longer than
// max_bytes: the kernel has dropped its rest, so the packet is of no use.
Received receive(int socket, std::size_t max_bytes) {
  const auto buffer = std::make_unique_for_overwrite<char[]>(max_bytes);
  iovec part{.iov_base = buffer.get(), .iov_len = max_bytes};
  ControlBuffer control;
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  ssize_t count = -1;
  do {
    count = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);

  Received received;
  Packet& packet = received.packet;
  // ECONNRESET: the peer closed without reading all that we sent. That is an end like any other.
  if (count < 0 && errno == ECONNRESET) {
    packet.is_end = true;
    return received;
  }
  if (count < 0) {
    received.status = errno == EAGAIN
                          ? Status(StatusCode::kDeadlineExceeded, "receive: nothing there now")
                          : errno_status("receive");
    return received;
  }
  packet.fds = take_fds(header);
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    received.status = {StatusCode::kProtocol,
                       fmt::format("receive: packet longer than {} B", max_bytes)};
    return received;
  }
  if ((header.msg_flags & MSG_CTRUNC) != 0 || packet.fds.size() > kMaxFds) {
    received.status = {StatusCode::kProtocol,
                       fmt::format("receive: packet with more than {} descriptors", kMaxFds)};
    return received;
  }
  packet.is_end = count == 0;
  packet.bytes.assign(buffer.get(), static_cast<std::size_t>(count));
  return received;
}

}  // namespace

Result<Packet> receive_packet(int socket, std::size_t max_bytes) {
  Received received = receive(socket, max_bytes);
  if (!received.status.ok()) return fail(std::move(received.status));
  return std::move(received.packet);
}

// The descriptors are looked at before the status, since a refused packet may have some too.
Result<Packet> receive_bytes(int socket, std::size_t max_bytes) {
  Received received = receive(socket, max_bytes);
  if (!received.packet.fds.empty()) {
    close_elsewhere(std::move(received.packet.fds));
    return fail(StatusCode::kProtocol, "receive: packet with descriptors");
  }
  if (!received.status.ok()) return fail(std::move(received.status));
  return std::move(received.packet);
}

bool refuse_descriptors(int listener) {
#ifndef SO_PASSRIGHTS
  constexpr int SO_PASSRIGHTS = 83;
#endif
  constexpr int kNone = 0;
  // A kernel before 6.16 does not know the option, and the call fails.
  return ::setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &kNone, sizeof(kNone)) == 0;
}

// The peer shares the eventfd's file description, so it may switch off O_NONBLOCK at any time. A
// plain read() could then wait for ever. RWF_NOWAIT asks for this one call not to wait.
void drain_event(int event) {
  std::uint64_t count = 0;
  iovec part{.iov_base = &count, .iov_len = sizeof(count)};
  // An empty counter (EAGAIN) is as good as a read one. Kernels before 5.8 do not know the flag for
  // an eventfd: there poll() asks first, and a peer that reads in between can still make the read()
  // wait.
  if (::preadv2(event, &part, 1, -1, RWF_NOWAIT) >= 0 || errno != EOPNOTSUPP) return;
  pollfd entry{.fd = event, .events = POLLIN, .revents = 0};
  if (::poll(&entry, 1, 0) <= 0) return;
  [[maybe_unused]] const ssize_t got = ::read(event, &count, sizeof(count));
}

}  // namespace gpushare::ipc
