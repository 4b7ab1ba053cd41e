// Sends and receives messages without ever waiting. A message that the socket does not take now is
// kept, in order, and flush() sends it later. A coordinator that reads nothing for kMaxUnsent
// messages counts as gone.
#include "csrc/client/link/connection.h"

#include <sys/socket.h>

#include <utility>

#include <fmt/format.h>

#include "csrc/ipc/socket.h"
#include "csrc/wire/codec.h"
#include "csrc/wire/messages.h"

namespace gpushare::client {

void Connection::close() {
  socket_.reset();
  unsent_.clear();
}

void Connection::shut_down() {
  // This fails only if the socket is not connected any more, which is what is wanted.
  if (is_open()) static_cast<void>(::shutdown(socket_.get(), SHUT_RDWR));
  unsent_.clear();
}

Status Connection::send(const wire::JobMessage& message) {
  if (!is_open()) return {StatusCode::kUnavailable, "send: not connected to a coordinator"};
  if (unsent_.size() >= kMaxUnsent) {
    return {StatusCode::kUnavailable,
            fmt::format("send: the coordinator has read none of {} messages", unsent_.size())};
  }
  unsent_.push_back(wire::encode(message));
  return flush();
}

Status Connection::flush() {
  while (!unsent_.empty()) {
    const Status status = ipc::send_packet(socket_.get(), unsent_.front());
    if (status.code() == StatusCode::kDeadlineExceeded) return {};  // later
    GS_RETURN_IF_ERROR(status);
    unsent_.pop_front();
  }
  return {};
}

Result<std::optional<Connection::Received>> Connection::receive() {
  if (!is_open()) return fail(StatusCode::kUnavailable, "receive: not connected to a coordinator");
  Result<ipc::Packet> packet = ipc::receive_packet(socket_.get(), wire::kMaxMessageBytes);
  if (!packet.has_value()) {
    if (packet.error().code() == StatusCode::kDeadlineExceeded) return std::nullopt;
    return fail(packet.error());
  }
  if (packet->is_end) {
    return fail(StatusCode::kUnavailable, "the coordinator closed the connection");
  }
  Result<wire::CoordinatorMessage> message = wire::decode_from_coordinator(packet->bytes);
  if (!message.has_value()) return fail(message.error());
  return Received{.message = std::move(*message), .fds = std::move(packet->fds)};
}

}  // namespace gpushare::client
