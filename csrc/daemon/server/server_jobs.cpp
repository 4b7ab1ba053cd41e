// Processes, from Hello until the pidfd says that they are gone.
//
// A Hello is checked in this order: it is the first of its connection; the process behind the
// connection can be seen and lives; it has no other connection; its device is here; its user may
// have one more job. A failed check refuses the connection with a text for the user. Then the
// process gets an entry, or its old one if it comes back, and the coordinator is told.
//
// Three events end something. A closed connection loses the session, and the job stays. A process
// that is gone ends its job. A process of the coordinator before that is gone need not be waited
// for any more.
//
// Identity comes from the kernel alone: process and user are those of the socket, whatever Hello
// says.
#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/path.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/paths.h"
#include "csrc/daemon/files/account.h"
#include "csrc/daemon/machine/process_info.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/codec_text.h"
#include "csrc/wire/device_name.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::daemon {
namespace {

// A pidfd is readable once the process, with all its threads and memory, is gone.
bool is_gone(int pidfd) {
  pollfd entry{.fd = pidfd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) > 0;
}

}  // namespace

// The entry of this process, if it has one. A process of the same number that has ended is taken
// out first. So is a connection that has hung up, after its last messages were heard.
JobEntry* Server::Impl::find_process(std::int32_t pid) {
  JobEntry* entry = jobs_.find_pid(pid);
  if (entry == nullptr) return nullptr;
  const JobId id = entry->id;
  if (is_gone(entry->pidfd.get())) {
    on_gone(id);
    return nullptr;
  }
  if (entry->session != nullptr && entry->session->has_hung_up()) {
    // The last messages of the dead connection still count. The socket's buffer cannot hold more
    // than this.
    constexpr int kAll = 1 << 20;
    read(*entry->session, kAll);
  }
  return jobs_.find(id);
}

// Whether this user may have one job more here: by the limit of the user, then by the descriptors
// that there are.
Status Server::Impl::check_number(std::uint32_t uid) const {
  const auto of_user = static_cast<std::uint32_t>(
      std::count_if(jobs_.entries().begin(), jobs_.entries().end(),
                    [uid](const auto& entry) { return entry.second.uid == uid; }));
  if (const auto most = options_.coordinator.users.of(uid).max_jobs; most && of_user >= *most) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("{} has {} jobs here, which is the most he may have (max_jobs)",
                        options_.coordinator.users.label(uid), of_user)};
  }
  if (jobs_.size() < descriptors_.most_jobs) return {};
  return {StatusCode::kFailedPrecondition,
          fmt::format("the coordinator serves {} jobs, and has no descriptors for more: raise its "
                      "limit (ulimit -Hn, or LimitNOFILE of its service)",
                      jobs_.size())};
}

// A pidfd of the process that made the connection. Its number may be another process's by now.
Result<UniqueFd> Server::Impl::open_peer(const Session& session) {
  if (session.peer().pid == 0) {
    return fail(StatusCode::kFailedPrecondition,
                "the coordinator cannot see this process: it is in another pid namespace, as those "
                "of containers. Start a coordinator in there, or share the namespace (--pid=host)");
  }
  auto pidfd = ipc::open_peer_pidfd(session.socket());
  if (!pidfd) return fail(pidfd.error());
  // A kernel before Linux 6.5 cannot say which process made the connection. Then a process that has
  // the number now and started after the connection was accepted is another one.
  const auto stat = read_process_stat(session.peer().pid);
  const bool is_later = stat && stat->start_ticks > session.admitted_ticks();
  if (is_gone(pidfd->get()) || is_later) {
    return fail(StatusCode::kUnavailable, "the process that made this connection is gone");
  }
  return std::move(*pidfd);
}

// The machine whose device the job gets; nullptr: there is none for it. A process that comes back
// stays on its device, where its memory is counted.
DeviceMachine* Server::Impl::machine_for(const wire::Hello& hello, const JobEntry* entry) {
  const std::string& wish = hello.of.device;
  if (entry == nullptr) return place(wish, hello.resident);
  const auto own = std::find_if(machines_.begin(), machines_.end(), [entry](const auto& machine) {
    return machine.conductor.get() == entry->conductor;
  });
  return is_meant(wish, *own) ? &*own : nullptr;
}

// The refusal for a job of another device: what the job wants, what is here, and how to get the
// other.
std::string Server::Impl::another_device_text(const std::string& device) const {
  if (!wire::is_device_name(device)) {
    return fmt::format("no device is called \"{}\"; a name is {}",
                       wire::codec::to_printable(device), wire::kDeviceNames);
  }
  if (machines_.size() > 1 || !wire::is_cuda(device)) {
    std::string names;
    for (const DeviceMachine& machine : machines_)
      names += (names.empty() ? "" : ", ") + machine.name;
    return fmt::format(
        "this job wants device {}, and the coordinator at {} has {}: set GPUSHARE_DEVICE to one it "
        "has, or start it with {}=SIZE in GPUSHARE_DEVICES",
        device, options_.socket, names, device);
  }
  const std::string socket = fmt::format("{}/{}", folder_of(options_.socket), socket_name(device));
  return fmt::format(
      "this job wants device {}, and the coordinator at {} has {}: use GPUSHARE_SOCKET={}, or "
      "leave it unset; a job starts a coordinator there, as does: gpushared --device {} --capacity "
      "SIZE --socket {}",
      device, options_.socket, machines_.front().name, socket, device, socket);
}

// A new job. From here on the pidfd tells when the process is gone.
Result<JobEntry*> Server::Impl::add_process(std::int32_t pid, std::uint32_t uid, UniqueFd pidfd) {
  if (Status status = check_number(uid); !status.ok()) return fail(status);
  JobEntry& entry = jobs_.add(pid);
  const JobId id = entry.id;
  entry.uid = uid;
  entry.began_unix_ns = unix_now_ns();
  entry.pidfd = std::move(pidfd);
  auto watch = loop_.watch(entry.pidfd.get(), [this, id] { on_gone(id); });
  if (!watch) {
    jobs_.erase(id);
    return fail(watch.error());
  }
  entry.pid_watch = std::move(*watch);
  return &entry;
}

// A process says Hello when it connects for the first time, and again after each lost connection.
// Then its entry is there already, with its number and its room, and only the connection and the
// page are new.
void Server::Impl::on_hello(Session& session, wire::Hello hello) {
  if (session.job().value != 0) {
    refuse(session, "a second hello on one connection");
    return;
  }
  auto peer = open_peer(session);
  if (!peer) {
    refuse(session, peer.error().message());
    return;
  }
  const std::int32_t pid = session.peer().pid;
  JobEntry* entry = find_process(pid);
  if (entry != nullptr && entry->session != nullptr) {
    refuse(session, fmt::format("process {} has a connection already", pid));
    return;
  }
  // A process that has changed its user stays counted as the job of the one before.
  if (entry != nullptr && entry->uid != session.peer().uid) {
    refuse(session, fmt::format("process {} is a job of {}, and speaks as {} now", pid,
                                options_.coordinator.users.label(entry->uid),
                                options_.coordinator.users.label(session.peer().uid)));
    return;
  }
  DeviceMachine* const machine = machine_for(hello, entry);
  if (machine == nullptr) {
    refuse(session, another_device_text(hello.of.device));
    return;
  }
  if (entry == nullptr) {
    auto added = add_process(pid, session.peer().uid, std::move(*peer));
    if (!added) {
      refuse(session, added.error().message());
      return;
    }
    entry = *added;
  }
  // The page of the registration before says nothing any more: the hello does.
  entry->conductor = machine->conductor.get();
  entry->conductor->forget_waiting(*entry);
  entry->end_registration();
  hello.pid = pid;
  hello.uid = session.peer().uid;
  hello.of.job = entry->id;
  hello.of.device = machine->name;
  if (!wire::is_cuda(machine->name)) {
    // On a CPU jobs may have what was configured, whatever one of them says.
    hello.device_total = hello.device_free = Bytes{0};
  }
  entry->uid = hello.uid;
  entry->address = hello.of;
  entry->command = hello.command;
  entry->held_term = hello.held_term;
  entry->session = &session;
  entry->lost_at.reset();
  session.set_job(entry->id);
  visitors_.remove(session.socket());
  timers_.linger.cancel();
  if (auto known = expected_.take(pid)) {
    entry->kept_account = std::move(known->account);
    entry->paused_by = known->paused_by;
    expect_no_more(pid, entry->conductor);
  }
  promised_.end(pid);
  note_hello_of_rank(*entry, hello);
  write_state();
  log::info("{} says hello: uid {}, version {}, {}", session.name(), hello.uid, hello.version,
            hello.command);
  if (machines_.size() > 1) log::info("{} is on {}", session.name(), machine->name);
  entry->conductor->feed(entry->id, hello);
  suspension_watch_.begin();
}

// The connection is gone and the process lives. A last look at the page counts, then the
// coordinator hears that the job is lost. Its room stays its own until the process is gone.
void Server::Impl::on_session_closed(JobId id) {
  JobEntry* entry = jobs_.find(id);
  if (entry == nullptr) return;
  if (!entry->is_welcomed) {  // refused at once: the coordinator does not know it
    keep_left_over(entry->kept_account);
    leave_gang(*entry);
    jobs_.erase(id);
    write_state();
    end_if_unused();
    return;
  }
  entry->conductor->look(*entry);
  entry->conductor->forget_waiting(*entry);
  entry->lost_at = monotonic_now();
  entry->conductor->feed(id, wire::Lost{entry->address});
}

// The process is gone with its memory. The coordinator ends its lease and frees its room.
void Server::Impl::on_gone(JobId id) {
  JobEntry* entry = jobs_.find(id);
  if (entry == nullptr) return;
  if (entry->session != nullptr) forget_session(std::exchange(entry->session, nullptr)->socket());
  Conductor& conductor = *entry->conductor;
  conductor.forget_waiting(*entry);
  const bool had_lease =
      entry->registration && entry->registration->belief().lease == Belief::Lease::kOpen;
  if (entry->is_welcomed && had_lease) {
    // The holder's figures since the last look count, so they are told before its end. For a job
    // without a lease this is not done: it has said its own, and if it waits, this step could grant
    // it a lease.
    conductor.feed(id, wire::Observed{entry->address, entry->registration->usage()});
  }
  if (entry->is_welcomed) {
    keep_account(*entry, true);
    conductor.feed(id, wire::Gone{entry->address});
  }
  leave_gang(*entry);
  log::info("job {} (pid {}) is gone", id.value, entry->pid);
  jobs_.erase(id);
  write_state();
  share_profiles(conductor);
  end_if_unused();
}

// No machine need wait any more for what this process holds.
void Server::Impl::on_expected_gone(const KnownJob& job) {
  keep_left_over(job.account);
  expect_no_more(job.pid, nullptr);
  write_state();
}

}  // namespace gpushare::daemon
