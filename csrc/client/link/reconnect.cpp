// A coordinator that is gone, and the next one. All of it runs on the client thread. Meanwhile the
// holder iterates on its old page, threads in the gate wait on, and requests for room stay open.
//
// The order is: pause, if connections have ended at once before; find a coordinator or start one;
// say Hello; register again; send the open requests for room again. The new page comes with
// Registered, and carry_over.cpp moves the lease to it.
//
// What may go wrong: none is found, or twelve connections in a row end at once. Then the job goes
// on unmanaged.
#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/path.h"
#include "csrc/client/link/connector.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::client {
namespace {

// The folder of the socket that this job is connected to. A listener binds another name and renames
// it, so only the folder can be compared.
std::string folder_of_peer(int socket) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return folder_of(&address.sun_path[0]);
}

}  // namespace

// Notes the loss, and whether the coordinator was a service's: its socket lay in another folder
// than the one where this job would start a coordinator.
void Runtime::Impl::lose_connection(const Status& why) {
  MutexLock lock(mu_);
  if (!link_.is_attached()) return;
  if (link_.connection().is_lost()) {
    log::warn(
        "this program has closed files that gpushare had open (os.closerange, or a library that "
        "makes daemons). The job connects again and goes on. Closing files before import torch "
        "avoids that");
  }
  log::info("job {} lost its coordinator: {}", link_.job().value, why.message());
  const std::string folder = folder_of_peer(link_.connection().fd());
  const bool is_of_service = !folder.empty() && folder != folder_of(config_.socket_paths.back());
  link_.lose(is_of_service, monotonic_now());
  // The lease was taken in the gap, and the Close message is lost with the connection.
  if (page() != nullptr && wire::load(*page()).state() == wire::LeaseState::kClosing) {
    finish_closing(*page());
  }
  changed_.notify_all();
}

// false: the client thread has nothing more to do.
bool Runtime::Impl::reconnect() {
  while (true) {
    const Status status = find_and_adopt();
    if (status.ok()) return true;
    if (status.code() == StatusCode::kCancelled) return false;
    MutexLock lock(mu_);
    link_.note_useless();
    // Gone again before it answered: another may come. All else is final.
    const bool is_gone_again =
        status.code() == StatusCode::kDeadlineExceeded && !link_.has_given_up();
    if (is_gone_again) continue;
    go_unmanaged(status.message());
    return false;
  }
}

// false: the runtime is being stopped.
bool Runtime::Impl::pause_before_reconnect() {
  Nanos until;
  {
    MutexLock lock(mu_);
    until = monotonic_now() + link_.pause_before_next(config_.reconnect_pause);
  }
  // A thread that wakes this one has something for a coordinator, and there is none yet. So the
  // pause goes on.
  for (Nanos now = monotonic_now(); now < until; now = monotonic_now()) {
    if (!thread_.pause(-1, false, until - now)) return false;
  }
  return true;
}

// One attempt to find the next coordinator and to join it. errors: kDeadlineExceeded (it ended
// before it answered), kCancelled, and others, which are final.
Status Runtime::Impl::find_and_adopt() {
  Nanos patience;
  {
    MutexLock lock(mu_);
    if (link_.has_given_up()) {
      return {StatusCode::kUnavailable, "the coordinator ends every connection at once"};
    }
    patience = link_.patience();
  }
  if (!pause_before_reconnect()) return {StatusCode::kCancelled, "the runtime is stopped"};
  Result<Greeting> greeting = find_and_greet(patience);
  if (!greeting.has_value()) return greeting.error();
  configure_host_tier(greeting->welcome);  // it may have other budgets
  MutexLock lock(mu_);
  adopt(std::move(*greeting));
  if (registration_.is_wanted()) send(make_register());
  for (const wire::Need& need : needs_.waiting(link_.address()))
    send(need);
  changed_.notify_all();
  return {};
}

}  // namespace gpushare::client
