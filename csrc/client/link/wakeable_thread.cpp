// Waits with ppoll, since its timeouts are precise. The eventfd is emptied after each wait, so the
// wake-ups of any number of threads end one wait.
#include "csrc/client/link/wakeable_thread.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "csrc/base/log.h"
#include "csrc/base/process/start_thread.h"

namespace gpushare::client {

Status WakeableThread::prepare() {
  if (wake_.is_valid()) return {};
  wake_ = OwnFile(UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  if (!wake_.is_valid()) return errno_status("make the client thread's eventfd");
  return {};
}

Status WakeableThread::start(const char* what, std::function<void()> body) {
  Result<std::thread> thread = start_thread(what, std::move(body));
  if (!thread.has_value()) return thread.error();
  thread_ = std::move(*thread);
  return {};
}

void WakeableThread::wake() const {
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof(one)) < 0) {
    log::debug("{}", errno_status("wake the client thread").message());
  }
}

bool WakeableThread::pause(int socket, bool wants_write, std::optional<Nanos> timeout) const {
  constexpr std::int64_t kNanosInSecond = 1'000'000'000;
  // The program may have closed the eventfd: then nobody can wake this thread.
  constexpr Nanos kUntilLooked = seconds(1);
  const auto events = static_cast<short>(wants_write ? POLLIN | POLLOUT : POLLIN);
  std::array<pollfd, 2> entries{{{.fd = socket, .events = events, .revents = 0},
                                 {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
  const std::int64_t ns = std::max<std::int64_t>(timeout.value_or(kUntilLooked).value(), 0);
  const timespec wait{.tv_sec = ns / kNanosInSecond, .tv_nsec = ns % kNanosInSecond};
  // An error is a signal at most, and the caller looks again anyway.
  ::ppoll(entries.data(), entries.size(), &wait, nullptr);
  std::uint64_t ignored = 0;
  while (::read(wake_.get(), &ignored, sizeof(ignored)) > 0) {
  }
  return !is_stopping();
}

}  // namespace gpushare::client
