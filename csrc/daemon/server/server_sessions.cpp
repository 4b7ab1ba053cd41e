// Connections and their messages.
//
// A connection is a visitor until it has said Hello. Visitors are limited in number and in what
// they may say (visitors.h). A job is read only a few messages a turn, so that none keeps the
// others waiting.
//
// A message is handled in this order. Hello makes a job. Questions (StatusRequest, Set, SetPolicy)
// are answered, on connections of their own, and a Stop ends the coordinator. Everything else is a
// job's: the page is looked at first, since it is faster than the socket, and then the state
// machine gets the message.
//
// What may go wrong: the peer sends what it may not, reads nothing, or is not allowed here. It is
// refused with a reason, marked broken and closed. Closing happens in read(), in dismiss(), or in a
// later turn of the loop, and never while the conductor carries out an answer.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
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
#include "csrc/wire/messages.h"

namespace gpushare::daemon {
namespace {

// At most so many connections are accepted in one turn of the loop.
constexpr int kAcceptsATurn = 32;
// A job that sends without end must not keep the others waiting.
constexpr int kMessagesATurn = 16;
// The pause after a failed accept. A descriptor may have become free by then.
constexpr Nanos kAcceptPause = millis(100);
// The pause when connections come faster than they are accepted. They wait in the listener's queue.
constexpr Nanos kFloodPause = millis(10);
// The time between two looks at the visitors: while some wait to be heard, and otherwise.
constexpr Nanos kHearAgain = millis(20);
constexpr Nanos kLookAgain = seconds(1);
// How old the list of unmanaged processes may be when a Need comes, whose refusal would name them.
constexpr Nanos kNewsAge = seconds(30);

}  // namespace

void Server::Impl::on_connection() {
  for (int i = 0; i < kAcceptsATurn; ++i) {
    if (!accepts_.take(monotonic_now())) return accept_later(kFloodPause);
    auto socket = ipc::accept_from(listener_.get());
    if (socket) {
      admit(std::move(*socket));
      continue;
    }
    if (socket.error().code() == StatusCode::kUnavailable) return;
    log::error("{}; trying again in {}", socket.error().message(), to_string(kAcceptPause));
    return accept_later(kAcceptPause);
  }
}

// The listener is not watched meanwhile: the loop would report it without end.
void Server::Impl::accept_later(Nanos pause) {
  listener_watch_.reset();
  accept_timer_.set_at(monotonic_now() + pause);
}

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
  if (visitors_.empty()) visitor_timer_.set_at(now + kLookAgain);
  const auto last = visitors_.add(number, peer->uid, now);
  if (last.has_value()) dismiss(*last, "too many connections that are no job's");
}

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
  if (unheard_.empty()) visitor_timer_.set_at(now + kHearAgain);
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
  if (!visitors_.empty()) visitor_timer_.set_at(now + kLookAgain);
}

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

void Server::Impl::handle(Session& session, wire::JobMessage message) {
  if (auto* hello = std::get_if<wire::Hello>(&message)) {
    on_hello(session, std::move(*hello));
    return;
  }
  const bool is_question = std::holds_alternative<wire::StatusRequest>(message) ||
                           std::holds_alternative<wire::Set>(message) ||
                           std::holds_alternative<wire::SetPolicy>(message);
  if (is_question && session.job().value != 0) {
    // On a job's connection a question would not count among those of its user (visitors.h).
    refuse(session, "a question about jobs needs a connection of its own");
    return;
  }
  if (const auto* status = std::get_if<wire::StatusRequest>(&message)) {
    std::optional<sched::Why> why;
    if (status->why.has_value()) why = conductor_->coordinator().why(*status->why, monotonic_now());
    if (status->why.has_value() && !why.has_value()) {
      refuse(session, fmt::format("there is no job {}. See: gpushare status", status->why->value));
      return;
    }
    reply(session, wire::StatusReport{report(std::move(why))});
    return;
  }
  if (const auto* stop = std::get_if<wire::Stop>(&message)) {
    handle_stop(session, stop->force);
    return;
  }
  if (const auto* set = std::get_if<wire::Set>(&message)) {
    handle_set(session, *set);
    return;
  }
  if (const auto* set = std::get_if<wire::SetPolicy>(&message)) {
    handle_policy(session, set->policy);
    return;
  }
  JobEntry* entry = jobs_.find(session.job());
  if (entry == nullptr) {
    refuse(session, "the first message of a job must be hello");
    return;
  }
  // The page is faster than the socket: what the job did there before it sent this message comes
  // first.
  conductor_->look(*entry);
  if (session.is_broken()) return;
  if (const auto* wish = std::get_if<wire::Register>(&message)) {
    entry->address.gang = wish->of.gang;
    entry->address.rank = wish->of.rank;
    entry->address.ranks = wish->of.ranks;
    entry->iterations_before = wish->iterations_done;
  }
  // If the Need is refused, the text names who holds memory, unmanaged processes too.
  const bool is_need = std::holds_alternative<wire::Need>(message);
  if (is_need && (!looked_around_ || monotonic_now() - *looked_around_ > kNewsAge)) look_around();
  // Whether the holder's spilled memory is back decides who may give room, so the coordinator gets
  // the newest figures.
  const bool is_holder =
      entry->registration && entry->registration->belief().lease == Belief::Lease::kOpen;
  if (is_need && is_holder) {
    conductor_->feed(entry->id, wire::Observed{entry->address, entry->registration->usage()});
    if (session.is_broken()) return;
  }
  const bool is_last = std::holds_alternative<wire::Unregister>(message);
  conductor_->feed(entry->id, message);
  if (is_last) {
    conductor_->forget_waiting(*entry);
    entry->end_registration();
    save_profiles();
  }
}

// A failed send marks the session broken, and read() then closes it.
void Server::Impl::reply(Session& session, const wire::CoordinatorMessage& message) {
  const Status status = session.send(message);
  if (!status.ok()) log::warn("{}: {}", session.name(), status.message());
}

// The owner and root may stop the coordinator; with jobs, only by force. The loop stops in a later
// turn, so that the report is sent before.
void Server::Impl::handle_stop(Session& session, bool force) {
  if (session.peer().uid != ::geteuid() && session.peer().uid != 0) {
    refuse(session, fmt::format("user {} may not stop the coordinator of user {}",
                                session.peer().uid, ::geteuid()));
    return;
  }
  if (!jobs_.empty() && !force) {
    const bool is_one = jobs_.size() == 1;
    refuse(session,
           fmt::format("{} connected. --force stops the coordinator, and {} a new one",
                       is_one ? "1 job is" : fmt::format("{} jobs are", jobs_.size()),
                       is_one ? "that job goes on and starts" : "those jobs go on and start"));
    return;
  }
  log::info("pid {} asks to stop{}", session.peer().pid, force ? " by force" : "");
  reply(session, wire::StatusReport{report()});
  loop_.post([this] { shut_down("asked to stop"); });
}

// The user who asks for a change. A job's own user may change it; the coordinator's owner and root
// may change all.
sched::Requester Server::Impl::requester_of(const Session& session) {
  const std::uint32_t uid = session.peer().uid;
  return {.uid = uid, .may_change_all = uid == ::geteuid() || uid == 0};
}

void Server::Impl::handle_set(Session& session, const wire::Set& set) {
  const Status status = conductor_->set(set.job, set.changes, requester_of(session));
  if (!status.ok()) return refuse(session, status.message());
  reply(session, wire::StatusReport{report()});
}

// The policy concerns all users, so only the coordinator's owner and root may change it. It is kept
// for the coordinator after a crash.
void Server::Impl::handle_policy(Session& session, const std::string& policy) {
  const sched::Requester by = requester_of(session);
  if (!by.may_change_all) {
    refuse(session, fmt::format("user {} may not change the policy of the coordinator of user {}",
                                by.uid, ::geteuid()));
    return;
  }
  const Status status = conductor_->set_policy(policy);
  if (!status.ok()) return refuse(session, status.message());
  log::info("pid {} sets the policy {}", session.peer().pid, policy);
  policy_ = policy;
  write_state();
  reply(session, wire::StatusReport{report()});
}

void Server::Impl::refuse(Session& session, const std::string& reason) {
  if (session.is_broken()) return;
  log::warn("{} refused: {}", session.name(), reason);
  // It does not matter whether the peer hears it: the connection ends in any case.
  [[maybe_unused]] const Status status = session.send(wire::Refused{reason});
  session.mark_broken(reason);
}

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
  if (!are_descriptors_refused_) {
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
