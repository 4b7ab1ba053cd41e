// A coordinator that is gone, and the next one. All of it runs on the client thread; meanwhile the
// holder iterates on its old page, waiters wait, and requests for room stay open.
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/path.h"
#include "csrc/client/link/connector.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {
namespace {

// A coordinator that ends in order leaves its socket for an instant; one that is restarted by
// somebody else needs a little longer.
constexpr Nanos kPatience = millis(200);
// Of a service, which a job cannot start: a coordinator of the job's own beside it would give the
// device away twice.
constexpr Nanos kPatienceWithService = seconds(3);
// A connection that ends sooner was of no use; so many in a row, and there is no use in another.
constexpr Nanos kShort = seconds(1);
constexpr int kMaxShort = 12;
constexpr int kMostTimesLonger = 100;  // times the first
// The pause before the next connection: none for the first ones of no use, then twice as long each
// time. Whatever ended them may be over by then.
Nanos pause_after(int num_short, Nanos first, Nanos longest) {
  constexpr int kAtOnce = 3;
  Nanos pause = num_short < kAtOnce ? Nanos{0} : first;
  for (int i = kAtOnce; i < num_short && pause < longest; ++i)
    pause = pause * 2;
  return std::min(pause, longest);
}

// The folder of the socket that it is connected to; a socket is bound under another name, and
// renamed.
std::string folder_of_peer(int socket) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return folder_of(&address.sun_path[0]);
}

}  // namespace

void Runtime::Impl::lose_connection(const Status& why) {
  MutexLock lock(mu_);
  if (link_ != Link::kAttached) return;
  log::info("job {} lost its coordinator: {}", address_.job.value, why.message());
  link_ = Link::kLost;
  const std::string folder = folder_of_peer(connection_.fd());
  is_of_service_ = !folder.empty() && folder != folder_of(config_.socket_paths.back());
  connection_.close();
  const bool is_short = monotonic_now() - connected_at_ < kShort;
  num_short_connections_ = is_short ? num_short_connections_ + 1 : 0;
  // Taken in the gap, and its Close message is lost with the connection.
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
    ++num_short_connections_;
    // Gone again before it answered: another may come. All else is final.
    const bool is_gone_again =
        status.code() == StatusCode::kDeadlineExceeded && num_short_connections_ < kMaxShort;
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
    until = monotonic_now() + pause_after(num_short_connections_, config_.reconnect_pause,
                                          config_.reconnect_pause * kMostTimesLonger);
  }
  // Whoever wakes this thread has something for a coordinator.
  for (Nanos now = monotonic_now(); now < until; now = monotonic_now()) {
    if (!pause(-1, false, until - now)) return false;
  }
  return true;
}

// errors: kDeadlineExceeded (it ended before it answered), kCancelled, and others, which are final.
Status Runtime::Impl::find_and_adopt() {
  Nanos patience = kPatience;
  {
    MutexLock lock(mu_);
    if (num_short_connections_ >= kMaxShort) {
      return {StatusCode::kUnavailable, "the coordinator ends every connection at once"};
    }
    if (is_of_service_) patience = kPatienceWithService;
  }
  if (!pause_before_reconnect()) return {StatusCode::kCancelled, "the runtime is stopped"};
  Result<Greeting> greeting = find_and_greet(patience);
  if (!greeting.has_value()) return greeting.error();
  configure_host_tier(greeting->welcome);  // it may have other budgets
  MutexLock lock(mu_);
  adopt(std::move(*greeting));
  ++num_reconnects_;
  if (options_.has_value()) send(make_register());
  for (const wire::Need& need : needs_.waiting(address_))
    send(need);
  changed_.notify_all();
  return {};
}

}  // namespace gpushare::client
