// Asks the kernel for all sockets of the family AF_UNIX and keeps those with an abstract name. The
// question is one netlink message (sock_diag(7)). The answer is a stream of messages, one for each
// socket, up to NLMSG_DONE. A coordinator learns from it who has claimed a device
// (device_claim.cpp).
//
// What may go wrong: a kernel without this interface fails the question or answers NLMSG_ERROR. The
// caller then gets an error, and never a list that may be incomplete.
#include "csrc/ipc/abstract_sockets.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace gpushare::ipc {
namespace {

struct Question {
  nlmsghdr header = {};
  unix_diag_req request = {};
};

// Sends the question: sockets in every state, each with its name and the user who made it.
Result<UniqueFd> ask() {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket.is_valid()) return fail(errno_status("list sockets: socket"));
  Question question;
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = AF_UNIX;
  question.request.udiag_states = ~0U;
  question.request.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_UID;
  if (::send(socket.get(), &question, sizeof(question), 0) < 0) {
    return fail(errno_status("list sockets: send"));
  }
  return socket;
}

// Reads one message of the answer: a fixed part, then attributes of type, length and value. The
// result is empty for a socket without an abstract name, and for one whose owner the kernel does
// not say. A length that reaches beyond the message ends the reading.
std::optional<AbstractSocket> read_socket(const nlmsghdr& message) {
  AbstractSocket socket;
  bool has_owner = false;
  const auto* const bytes = reinterpret_cast<const char*>(&message);
  unix_diag_msg fixed = {};
  std::memcpy(&fixed, bytes + NLMSG_LENGTH(0), sizeof(fixed));
  socket.inode = fixed.udiag_ino;
  std::size_t at = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(unix_diag_msg)));
  while (at + sizeof(rtattr) <= message.nlmsg_len) {
    rtattr attribute = {};
    std::memcpy(&attribute, bytes + at, sizeof(attribute));
    if (attribute.rta_len < sizeof(attribute) || at + attribute.rta_len > message.nlmsg_len) break;
    const char* const data = bytes + at + sizeof(attribute);
    const std::size_t size = attribute.rta_len - sizeof(attribute);
    if (attribute.rta_type == UNIX_DIAG_NAME && size > 1 && data[0] == '\0') {
      socket.name.assign(data + 1, size - 1);
    } else if (attribute.rta_type == UNIX_DIAG_UID && size == sizeof(socket.uid)) {
      std::memcpy(&socket.uid, data, size);
      has_owner = true;
    }
    at += NLMSG_ALIGN(attribute.rta_len);
  }
  if (socket.name.empty() || !has_owner) return std::nullopt;
  return socket;
}

}  // namespace

// The kernel answers a dump in as many packets as it needs. Sockets that come and go meanwhile may
// be missing.
Result<std::vector<AbstractSocket>> list_abstract_sockets() {
  auto socket = ask();
  if (!socket) return fail(socket.error());
  std::vector<AbstractSocket> found;
  // One recv() brings many messages, and the last one of all is NLMSG_DONE.
  alignas(nlmsghdr) std::array<char, 32768> buffer;
  while (true) {
    const ssize_t size = ::recv(socket->get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return fail(errno_status("list sockets: recv"));
    auto left = static_cast<unsigned>(size);
    const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data());
    for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) return found;
      if (message->nlmsg_type == NLMSG_ERROR)
        return fail(StatusCode::kUnavailable, "the kernel does not list sockets");
      if (auto one = read_socket(*message)) found.push_back(*std::move(one));
    }
  }
}

}  // namespace gpushare::ipc
