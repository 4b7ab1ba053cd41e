// Waiting for a change of the lease word. The word has 64 bits and the kernel's futex has 32, so
// jobs wait on the low half of the word. The job waits and the coordinator wakes it, so the
// process-private variant of the call is not used.
//
// WaitResult tells apart why a wait ended. A bad address or time is no such result: this process
// computes both, so that is a bug and aborts. The caller reads the word again after each wait,
// since a wake-up may be spurious.
#include "csrc/ipc/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>

#include "csrc/base/check.h"

namespace gpushare::ipc {

static_assert(std::endian::native == std::endian::little, "low_half is the first half");
static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));

// The state and the low bits of the term lie there: lease_page.h puts them into the low half.
std::uint32_t* low_half(std::atomic<std::uint64_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}

WaitResult futex_wait(std::uint32_t* word, std::uint32_t expected, Nanos timeout) {
  constexpr std::int64_t kNanosInSecond = 1'000'000'000;
  const std::int64_t ns = std::max<std::int64_t>(timeout.value(), 0);
  const timespec relative{.tv_sec = ns / kNanosInSecond, .tv_nsec = ns % kNanosInSecond};
  // Not FUTEX_PRIVATE_FLAG: the waker is another process. FUTEX_WAIT's timeout is relative and on
  // CLOCK_MONOTONIC.
  const long result =
      ::syscall(SYS_futex, word, FUTEX_WAIT, expected, &relative, nullptr, std::uint32_t{0});
  if (result == 0) return WaitResult::kWoken;
  switch (errno) {
    case EAGAIN: return WaitResult::kChanged;
    case ETIMEDOUT: return WaitResult::kTimedOut;
    case EINTR: return WaitResult::kInterrupted;
    default: break;
  }
  // EFAULT or EINVAL: the address or the timeout is our own.
  GS_CHECK(false, "futex wait at {}: errno {}", static_cast<void*>(word), errno);
}

void futex_wake(std::uint32_t* word, int count) {
  const long result =
      ::syscall(SYS_futex, word, FUTEX_WAKE, count, nullptr, nullptr, std::uint32_t{0});
  GS_CHECK(result >= 0, "futex wake at {}: errno {}", static_cast<void*>(word), errno);
}

}  // namespace gpushare::ipc
