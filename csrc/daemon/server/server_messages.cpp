// What a message does.
//
// It is handled in this order. Hello makes a job. Questions (StatusRequest, Set, SetPolicy, Place)
// are answered, on connections of their own, and a Stop ends the coordinator. Everything else is a
// job's: the page is looked at first, since it is faster than the socket, and then the state
// machine gets the message.
//
// What may go wrong: the peer asks for what it may not have, or speaks as a job without a Hello. It
// gets a reason, and the connection is closed by read() in server_sessions.cpp. A message may break
// its own session while it is handled, so that is asked before each further step.
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/jobs/session.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/wire/messages.h"

namespace gpushare::daemon {
namespace {

// How old the list of unmanaged processes may be when a Need comes, whose refusal would name them.
constexpr Nanos kNewsAge = seconds(30);

}  // namespace

// The session may be broken afterwards, and is not closed here.
void Server::Impl::handle(Session& session, wire::JobMessage message) {
  if (auto* hello = std::get_if<wire::Hello>(&message)) {
    return on_hello(session, std::move(*hello));
  }
  if (!handle_question(session, message)) handle_of_job(session, std::move(message));
}

// Answers what the command line asks. false: the message is none of that kind. On a job's
// connection a question would not count among those of its user (visitors.h), so it is refused
// there. A Stop may come on any connection.
bool Server::Impl::handle_question(Session& session, const wire::JobMessage& message) {
  if (const auto* stop = std::get_if<wire::Stop>(&message)) {
    handle_stop(session, stop->force);
    return true;
  }
  const auto* status = std::get_if<wire::StatusRequest>(&message);
  const auto* set = std::get_if<wire::Set>(&message);
  const auto* policy = std::get_if<wire::SetPolicy>(&message);
  const auto* place = std::get_if<wire::Place>(&message);
  if (status == nullptr && set == nullptr && policy == nullptr && place == nullptr) return false;
  if (session.job().value != 0) {
    refuse(session, "a question about jobs needs a connection of its own");
  } else if (status != nullptr) {
    handle_status(session, *status);
  } else if (set != nullptr) {
    handle_set(session, *set);
  } else if (place != nullptr) {
    handle_place(session, *place);
  } else {
    handle_policy(session, policy->policy);
  }
  return true;
}

// Messages that only a job sends. An Unregister ends the registration, and with it the page; the
// process keeps its entry and its room, since its memory is still there.
void Server::Impl::handle_of_job(Session& session, wire::JobMessage message) {
  JobEntry* entry = jobs_.find(session.job());
  if (entry == nullptr) {
    refuse(session, "the first message of a job must be hello");
    return;
  }
  // The page is faster than the socket: what the job did there before it sent this message comes
  // first.
  Conductor& conductor = *entry->conductor;
  conductor.look(*entry);
  if (session.is_broken()) return;
  if (auto* wish = std::get_if<wire::Register>(&message)) {
    if (const Status status = check_gang(*entry, *wish); !status.ok())
      return refuse(session, status.message());
    entry->address.gang = wish->of.gang;
    entry->address.rank = wish->of.rank;
    entry->address.ranks = wish->of.ranks;
    join_gang(*entry, *wish);
    entry->iterations_before = wish->iterations_done;
    entry->has_unregistered = false;
    // Before the answer: a job that knows it is registered has an account whatever happens.
    entry->kept_account = account_if_lost(*entry, *wish);
    write_state();
    correct_pause(*entry, *wish);
  }
  if (std::holds_alternative<wire::Need>(message)) observe_before_need(*entry);
  if (session.is_broken()) return;
  conductor.feed(entry->id, message);
  if (std::holds_alternative<wire::Register>(message)) note_pauses();
  if (std::holds_alternative<wire::Unregister>(message)) {
    conductor.forget_waiting(*entry);
    entry->end_registration();
    entry->has_unregistered = true;
    note_pauses();
    leave_gang(*entry);
    share_profiles(conductor);
  }
}

// Gets the news that the answer to a Need depends on. If it is refused, the text names who holds
// memory, unmanaged processes too. Whether the holder's spilled memory is back decides who may give
// room, so the coordinator gets the holder's newest figures.
void Server::Impl::observe_before_need(JobEntry& entry) {
  look_around(kNewsAge);
  const bool is_holder =
      entry.registration && entry.registration->belief().lease == Belief::Lease::kOpen;
  if (is_holder) {
    entry.conductor->feed(entry.id, wire::Observed{entry.address, entry.registration->usage()});
  }
}

// A failed send marks the session broken, and read() then closes it.
void Server::Impl::reply(Session& session, const wire::CoordinatorMessage& message) {
  const Status status = session.send(message);
  if (!status.ok()) log::warn("{}: {}", session.name(), status.message());
}

// A question about a job that is gone is refused with a text, and not answered with an empty one.
void Server::Impl::handle_status(Session& session, const wire::StatusRequest& request) {
  std::optional<sched::Why> why;
  if (request.why.has_value()) {
    why = conductor_of(*request.why).coordinator().why(*request.why, monotonic_now());
    if (!why.has_value()) {
      refuse(session, fmt::format("there is no job {}. See: gpushare status", request.why->value));
      return;
    }
  }
  reply(session, wire::StatusReport{report(std::move(why))});
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

// The answer to a change is a status report, so that whoever asked sees what is in force now.
void Server::Impl::handle_set(Session& session, const wire::Set& set) {
  for (const JobId job : on_each_device(set.job)) {
    const Status status = conductor_of(job).set(job, set.changes, requester_of(session));
    if (!status.ok()) return refuse(session, status.message());
  }
  note_pauses();
  reply(session, wire::StatusReport{report()});
}

// What a job says of its pause is a claim. If the coordinator before kept one, that one counts,
// whoever it is by. Otherwise the job may say that it is paused, and then its own user has done it,
// who may resume it as well.
void Server::Impl::correct_pause(const JobEntry& entry, wire::Register& wish) {
  if (wish.paused_by.has_value()) wish.paused_by = entry.uid;
  if (entry.paused_by.has_value()) wish.paused_by = entry.paused_by;
}

// Keeps who has paused which job for the next coordinator. Called after each message that may
// change that; a change of one job may be one of its whole gang.
void Server::Impl::note_pauses() {
  bool is_new = false;
  for (auto& [id, entry] : jobs_.entries()) {
    if (entry.registered_at == Nanos{}) continue;  // what was kept before still waits for it
    const auto now = entry.conductor->coordinator().paused_by(id);
    is_new = is_new || now != entry.paused_by;
    entry.paused_by = now;
  }
  if (is_new) write_state();
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
  // All machines know the same policies, so the first one refuses, or none does.
  for (const DeviceMachine& machine : machines_) {
    const Status status = machine.conductor->set_policy(policy);
    if (!status.ok()) return refuse(session, status.message());
  }
  log::info("pid {} sets the policy {}", session.peer().pid, policy);
  policy_ = policy;
  if (gang_rows_.has_value()) gang_rows_->set_policy(policy);
  write_state();
  reply(session, wire::StatusReport{report()});
}

}  // namespace gpushare::daemon
