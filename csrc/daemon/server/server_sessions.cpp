// Connections: who may connect, who is heard when, and how a connection ends.
//
// A connection is a visitor until it has said Hello. Visitors are limited in number and in what
// they may say (visitors.h). A job is read only a few messages a turn, so that none keeps the
// others waiting. What the messages do stands in server_messages.cpp.
//
// What may go wrong: the peer sends what it may not, reads nothing, or is not allowed here. It is
// refused with a reason, marked broken and closed. Closing happens in read(), in dismiss(), or in a
// later turn of the loop, and never while the conductor carries out an answer.
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/process/process_stat.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/jobs/session.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/ipc/closer.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/coordinator_messages.h"

namespace gpushare::daemon {
namespace {

// A job that sends without end must not keep the others waiting.
constexpr int kMessagesATurn = 16;
// The time between two looks at the visitors: while some wait to be heard, and otherwise.
constexpr Nanos kHearAgain = millis(20);
constexpr Nanos kLookAgain = seconds(1);

}  // namespace

// Whether this user may connect. If the socket's mode lets others in, the kernel has checked their
// right to.
bool Server::Impl::is_allowed(std::uint32_t uid) const {
  return options_.is_for_others() || uid == ::geteuid() || uid == 0;
}

// A new connection is a visitor. If there are too many, another one is closed in its place.
void Server::Impl::admit(UniqueFd socket) {
  const auto peer = ipc::peer_credentials(socket.get());
  if (!peer) {
    log::warn("{}", peer.error().message());
    return;
  }
  const int number = socket.get();
  auto session = std::make_unique<Session>(std::move(socket), *peer, boot_ticks_now());
  if (!is_allowed(peer->uid)) {
    refuse(*session,
           fmt::format("user {} may not use the coordinator of user {}", peer->uid, ::geteuid()));
    return;
  }
  if (!watch(*session)) return;
  sessions_[number] = std::move(session);
  const Nanos now = monotonic_now();
  if (visitors_.empty()) timers_.visitors.set_at(now + kLookAgain);
  const auto last = visitors_.add(number, peer->uid, now);
  if (last.has_value()) dismiss(*last, "too many connections that are no job's");
}

// The session's number is kept, and not a pointer: on_readable() finds out whether that session is
// still there.
bool Server::Impl::watch(Session& session) {
  const int number = session.socket();
  const Status status = session.watch(loop_, [this, number] { on_readable(number); });
  if (!status.ok()) log::error("{}", status.message());
  return status.ok();
}

// A job is read at once. A visitor is read one message at a time, if its user has not said too
// much; otherwise it waits, unwatched, for look_after_visitors().
void Server::Impl::on_readable(int socket) {
  const auto found = sessions_.find(socket);
  if (found == sessions_.end()) return;
  Session& session = *found->second;
  if (session.job().value != 0) return read(session, kMessagesATurn);
  const Nanos now = monotonic_now();
  if (visitors_.hear(socket, now)) return read(session, 1);
  session.rest();
  if (unheard_.empty()) timers_.visitors.set_at(now + kHearAgain);
  unheard_.push_back(socket);
}

// Closes visitors that have been silent for too long, and watches those again that were told to
// wait.
void Server::Impl::look_after_visitors() {
  const Nanos now = monotonic_now();
  for (const int socket : visitors_.silent(now))
    dismiss(socket, "it has said nothing for " + to_string(Visitors::kPatience));
  for (const int socket : std::exchange(unheard_, {})) {
    const auto found = sessions_.find(socket);
    if (found != sessions_.end() && !watch(*found->second)) dismiss(socket, "cannot be watched");
  }
  if (!visitors_.empty()) timers_.visitors.set_at(now + kLookAgain);
}

// For a visitor only: a job's connection is closed where it is read.
void Server::Impl::dismiss(int socket, const std::string& reason) {
  Session& session = *sessions_.at(socket);
  refuse(session, reason);
  close(session);
}

// Reads and handles up to `most` messages. May close the session, which must not be used
// afterwards.
void Server::Impl::read(Session& session, int most) {
  for (int i = 0; i < most && !session.is_broken(); ++i) {
    auto message = session.receive();
    if (message) {
      handle(session, std::move(*message));
      continue;
    }
    switch (message.error().code()) {
      case StatusCode::kDeadlineExceeded: return;
      case StatusCode::kProtocol: refuse(session, message.error().message()); break;
      default: session.mark_broken(message.error().message());
    }
  }
  if (session.is_broken()) close(session);
}

// The session stays in the table until its owner closes it, so whoever is working with it may go
// on.
void Server::Impl::refuse(Session& session, const std::string& reason) {
  if (session.is_broken()) return;
  log::warn("{} refused: {}", session.name(), reason);
  // It does not matter whether the peer hears it: the connection ends in any case.
  [[maybe_unused]] const Status status = session.send(wire::Refused{reason});
  session.mark_broken(reason);
}

// A job outlives its connection: on_session_closed() tells the coordinator that it is lost, and the
// end of the process comes by its pidfd.
void Server::Impl::close(Session& session) {
  const JobId job = session.job();
  log::info("{} disconnected: {}", session.name(), session.broken_reason());
  // Done first: nobody may send to this session, or mark it, while the coordinator is told.
  if (JobEntry* entry = jobs_.find(job)) entry->session = nullptr;
  forget_session(session.socket());
  if (job.value != 0) on_session_closed(job);
}

// Forgets the session and closes its connection. Unread packets may hold descriptors, if the kernel
// does not refuse them. Their close may take long, so it happens on another thread (ipc/closer.h).
void Server::Impl::forget_session(int socket) {
  const auto found = sessions_.find(socket);
  visitors_.remove(socket);
  std::erase(unheard_, socket);  // its number may be another's before these are heard
  if (!listener_.are_descriptors_refused()) {
    std::vector<UniqueFd> closing;
    closing.push_back(found->second->take_socket());
    ::shutdown(closing.front().get(), SHUT_RDWR);
    ipc::close_elsewhere(std::move(closing));
  }
  sessions_.erase(found);
}

// Closes a session that was found broken while it, or another one, is being served.
void Server::Impl::close_soon(int socket) {
  loop_.post([this, socket] {
    const auto found = sessions_.find(socket);
    // The number may be a new connection's by now: that one is not broken.
    if (found != sessions_.end() && found->second->is_broken()) close(*found->second);
  });
}

}  // namespace gpushare::daemon
