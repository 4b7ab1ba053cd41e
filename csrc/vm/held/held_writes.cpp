// The SIGSEGV handler decides by the address alone. If the address lies in a chunk that is on the
// move, or was until a second ago, the thread sleeps 0.2 ms and returns, and the processor makes
// the access again. Any other fault goes to the handler that was there before ours. If there was
// none, the default action is put back, and the repeated access ends the process as it would have
// without gpushare.
//
// Why a second: a thread may fault during a move and run its handler only after the move has ended.
// The repeated access then succeeds. If it was wrong for another reason it faults again, and after
// the second it is passed on.
//
// A handler may run at any instruction, so it uses atomics only: no lock, no allocation.
// g_num_looking keeps a range's table alive while a handler reads it. What may go wrong: with more
// than 64 ranges in a process the later ones are not watched.
#include "csrc/vm/held/held_writes.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "csrc/base/check.h"
#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/held/held_calls.h"

namespace gpushare::vm {
namespace {

constexpr std::size_t kMostRanges = 64;
// How long after a move a fault may still be due to it.
constexpr Nanos kLate = seconds(1);

std::array<std::atomic<HeldWrites*>, kMostRanges> g_ranges;
// Handlers that look at g_ranges now.
std::atomic<int> g_num_looking{0};

Mutex g_install_mu;
// The handler that was there before ours. It is written while ours is not installed, or by the
// thread that installs ours anew because it found another one on top.
struct sigaction g_previous;
// The thread that passes a fault on just now. If the fault comes back on that thread, the handler
// before ours calls us, and the default action ends the circle.
std::atomic<pid_t> g_passing{0};

// The access that faulted is made again when the handler returns, and then ends the process.
void take_default() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGSEGV, &action, nullptr);
}

// Passes a fault on to the handler before ours. A fault that comes back, or that nobody handles,
// ends the process as if we had never been there: the access is made again under the default
// action. A signal that was sent (by kill or raise) has no access to make again, so it is raised
// anew.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction previous = g_previous;
  const bool has_handler = (previous.sa_flags & SA_SIGINFO) != 0 ||
                           (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN);
  const pid_t self = ::gettid();
  if (!has_handler || g_passing.load() == self) {
    const bool is_sent = info->si_code <= 0;  // by a process, not by an access
    if (is_sent && previous.sa_handler == SIG_IGN) return;
    take_default();
    if (is_sent) ::pthread_kill(::pthread_self(), signal);
    return;
  }
  g_passing.store(self);
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else {
    previous.sa_handler(signal);
  }
  // A handler may put back the one it found, perhaps ours, and raise the signal anew to end the
  // process. The signal is pending then. g_passing stays set, so that our handler takes the default
  // action instead of passing the signal on once more.
  sigset_t pending;
  if (::sigpending(&pending) != 0 || sigismember(&pending, SIGSEGV) != 1) g_passing.store(0);
}

// errno is kept, since the interrupted code may be about to read it.
void on_fault(int signal, siginfo_t* info, void* context) {
  const int kept_errno = errno;
  if (info->si_code > 0 && any_may_be_held(static_cast<const std::byte*>(info->si_addr), 1)) {
    ::nanosleep(&kBetweenTries, nullptr);
  } else {
    pass_on(signal, info, context);
  }
  errno = kept_errno;
}

// Puts our handler on top at each move, since somebody (faulthandler, for one) may have installed
// another one since the last.
void install_on_top() {
  const MutexLock lock(g_install_mu);
  struct sigaction now{};
  if (::sigaction(SIGSEGV, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) return;
  g_previous = now;
  struct sigaction ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  if (::sigaction(SIGSEGV, &ours, nullptr) != 0) {
    log::warn("{}", errno_status("install a handler for writes to moving memory").message());
  }
}

}  // namespace

HeldWrites::HeldWrites(const std::byte* base, Bytes size)
    : base_(base), num_chunks_(size.to_size() / kChunkBytes.to_size()) {
  // Mapped: the entries are zero, and only those that are used take memory. If it cannot be had,
  // the range is not watched.
  void* const table = ::mmap(nullptr, num_chunks_ * sizeof(*ended_ns_), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) {
    log::warn("{}: a thread that writes while memory moves ends the process",
              errno_status("map the table of held writes").message());
    return;
  }
  ended_ns_ = static_cast<std::atomic<std::int64_t>*>(table);
  // Handlers find the range from here on, so its table has to be there already.
  for (auto& range : g_ranges) {
    HeldWrites* none = nullptr;
    if (range.compare_exchange_strong(none, this)) return;
  }
  log::warn(
      "{} ranges of memory are watched already: a thread that writes to this one while it "
      "moves ends the process",
      kMostRanges);
}

HeldWrites::~HeldWrites() {
  for (auto& range : g_ranges) {
    HeldWrites* self = this;
    range.compare_exchange_strong(self, nullptr);
  }
  // No handler finds this range from now on. Those that found it before are waited for: they read
  // the table without a lock.
  while (g_num_looking.load() > 0)
    ::usleep(10);
  if (ended_ns_ != nullptr) ::munmap(ended_ns_, num_chunks_ * sizeof(*ended_ns_));
}

// Handler and wrappers come first: from the moment the pages are read-only, threads may run into
// them.
void HeldWrites::hold(const std::byte* address, Bytes size) {
  install_on_top();
  take_over_calls();
  set_all(address, size, kHeld);
}

// For a second more faults count as due to this move (kLate).
void HeldWrites::let_go(const std::byte* address, Bytes size) {
  set_all(address, size, monotonic_now().value());
}

void HeldWrites::set_all(const std::byte* address, Bytes size, std::int64_t value) {
  if (ended_ns_ == nullptr) return;
  const auto first = static_cast<std::size_t>(address - base_) / kChunkBytes.to_size();
  const std::size_t last = first + size.to_size() / kChunkBytes.to_size();
  GS_CHECK(address >= base_ && last <= num_chunks_, "chunks {} to {} of {}", first, last,
           num_chunks_);
  for (std::size_t i = first; i < last; ++i)
    ended_ns_[i].store(value, std::memory_order_release);
}

bool HeldWrites::may_be_held(const std::byte* address, std::size_t size) const {
  if (ended_ns_ == nullptr) return false;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const auto base = reinterpret_cast<std::uintptr_t>(base_);
  const std::uintptr_t end = base + num_chunks_ * kChunkBytes.to_size();
  if (size == 0 || begin >= end || begin + size <= base) return false;
  const std::size_t first = begin > base ? (begin - base) / kChunkBytes.to_size() : 0;
  const std::size_t last = (std::min(begin + size, end) - base - 1) / kChunkBytes.to_size();
  const Nanos now = monotonic_now();
  return std::any_of(ended_ns_ + first, ended_ns_ + last + 1, [now](const auto& chunk) {
    const std::int64_t ended = chunk.load(std::memory_order_acquire);
    return ended == kHeld || (ended != 0 && now - Nanos{ended} < kLate);
  });
}

// For the handler, and for the wrappers of system calls (held_calls.cpp).
bool any_may_be_held(const std::byte* address, std::size_t size) {
  g_num_looking.fetch_add(1);  // seq_cst; pairs with the destructor's
  const bool found = std::ranges::any_of(g_ranges, [&](const auto& range) {
    const HeldWrites* const held = range.load();
    return held != nullptr && held->may_be_held(address, size);
  });
  g_num_looking.fetch_sub(1);
  return found;
}

}  // namespace gpushare::vm
