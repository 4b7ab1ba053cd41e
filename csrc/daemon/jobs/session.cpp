// One connection. Sending never waits: a peer whose buffer is full is broken, since waiting for it
// would hold up all others. A broken session sends and reads nothing more; its owner closes it when
// no answer is being carried out.
#include "csrc/daemon/jobs/session.h"

#include <poll.h>

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/status.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/codec.h"
#include "csrc/wire/messages.h"

namespace gpushare::daemon {

std::string Session::name() const {
  if (job_.value == 0) return fmt::format("pid {}", peer_.pid);
  return fmt::format("job {} (pid {})", job_.value, peer_.pid);
}

Status Session::watch(ipc::EventLoop& loop, ipc::EventLoop::Callback on_readable) {
  auto watch = loop.watch(socket_.get(), std::move(on_readable));
  if (!watch) return watch.error();
  watch_ = std::move(*watch);
  return {};
}

// The first failure breaks the session for good: a peer that has missed one message would
// misunderstand the ones after it.
Status Session::send(const wire::CoordinatorMessage& message, const std::vector<int>& fds) {
  if (is_broken()) return {StatusCode::kUnavailable, broken_};
  Status status = ipc::send_packet(socket_.get(), wire::encode(message), fds);
  if (!status.ok()) mark_broken(status.message());
  return status;
}

// An empty reason would mean a session that is not broken.
void Session::mark_broken(std::string reason) {
  if (broken_.empty()) broken_ = reason.empty() ? "closed" : std::move(reason);
}

// Descriptors that come with a packet are refused in receive_bytes(). What the bytes mean is
// checked field by field in decode_from_job().
Result<wire::JobMessage> Session::receive() {
  const auto packet = ipc::receive_bytes(socket_.get(), wire::kMaxMessageBytes);
  if (!packet) return fail(packet.error());
  if (packet->is_end) return fail(StatusCode::kUnavailable, "the peer has closed");
  return wire::decode_from_job(packet->bytes);
}

// POLLRDHUP is reported as soon as the peer has closed, even while messages of it are still unread.
bool Session::has_hung_up() const {
  pollfd entry{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

}  // namespace gpushare::daemon
