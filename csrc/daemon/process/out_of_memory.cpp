// Decides what an allocation that fails does: it ends the process. Going on is no choice, since a
// message that is half carried out leaves books that do not add up, and jobs take a coordinator's
// end better than wrong books.
//
// The line needs memory itself. So some is set aside at the start, and is given back before the
// line is written. If even that does not help, the line is written without the log. If the
// allocation that failed was the log's own, the log's lock is held, and the process stands still
// until the watchdog ends it (watchdog.h).
#include "csrc/daemon/process/out_of_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

#include "csrc/base/log.h"
#include "csrc/base/units.h"

namespace gpushare::daemon {
namespace {

constexpr int kFailed = 1;
// Enough for a line of the log. A larger block would be a mapping of its own, and the heap could
// not use it again.
constexpr std::size_t kReserveBytes = std::size_t{64} << 10;

std::atomic<void*> g_reserve = nullptr;

// A limit on addresses is what a user can raise, so it is named. Empty: there is none.
std::string limit_text() {
  rlimit limit{};
  const bool is_limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (!is_limited) return "";
  return "its addresses are limited to " +
         to_string(Bytes{static_cast<std::int64_t>(limit.rlim_cur)}) +
         " (ulimit -v, or LimitAS of its service); ";
}

[[noreturn]] void end_process() {
  // acq_rel: of several threads at once, one gives the reserve back and says why.
  void* const reserve = g_reserve.exchange(nullptr, std::memory_order_acq_rel);
  if (reserve == nullptr) {
    constexpr std::string_view kLine = "gpushared: ends, since it gets no memory\n";
    [[maybe_unused]] const ssize_t done = ::write(STDERR_FILENO, kLine.data(), kLine.size());
    ::_exit(kFailed);
  }
  std::free(reserve);
  log::error(
      "ends, since the system gives it no more memory: {}its jobs go on, and start the next "
      "coordinator",
      limit_text());
  ::_exit(kFailed);
}

}  // namespace

void end_clearly_without_memory() {
  // release: pairs with the acquire of the exchange in end_process().
  g_reserve.store(std::malloc(kReserveBytes), std::memory_order_release);
  std::set_new_handler(end_process);
}

}  // namespace gpushare::daemon
