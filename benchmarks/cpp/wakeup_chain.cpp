// What a hand-over cannot do without: two processes take turns of 1 ms of work, and between them a
// third one is woken and wakes the other, as the coordinator does: by an eventfd in epoll, and by a
// futex. Nothing is decided, and no lease is kept.
// Prints the microseconds from the end of one's work until the other is awake, a line each.
// Usage: wakeup_chain TURNS
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "csrc/base/clock.h"
#include "csrc/ipc/futex.h"

namespace gpushare {
namespace {

constexpr Nanos kWork = millis(1);
constexpr std::uint64_t kEnd = ~std::uint64_t{0};

struct Shared {
  std::atomic<std::uint64_t> turn;       // odd ones are the second worker's; kEnd: no more
  std::atomic<std::int64_t> work_ended;  // ns
};

// Until another turn than that one. Returns it.
std::uint64_t wait_while(Shared& shared, std::uint64_t turn) {
  for (;;) {
    // pairs with the store of the relay
    const std::uint64_t seen = shared.turn.load(std::memory_order_acquire);
    if (seen != turn) return seen;
    ipc::futex_wait(ipc::low_half(shared.turn), static_cast<std::uint32_t>(seen), seconds(1));
  }
}

void work(Shared& shared, std::uint64_t parity, int bell) {
  std::uint64_t turn = parity == 0 ? 0 : wait_while(shared, 0);
  while (turn != kEnd) {
    const Nanos begun = monotonic_now();
    // relaxed: ordered by the turn
    const Nanos before{shared.work_ended.load(std::memory_order_relaxed)};
    if (turn > 0) std::printf("%.3f\n", static_cast<double>((begun - before).value()) * 1e-3);
    Nanos now = begun;
    while (now < begun + kWork)
      now = monotonic_now();
    shared.work_ended.store(now.value(), std::memory_order_relaxed);
    const std::uint64_t one = 1;
    if (::write(bell, &one, sizeof(one)) < 0) std::abort();
    turn = wait_while(shared, turn);
    // The other's turn may be over already.
    if (turn != kEnd && turn % 2 != parity) turn = wait_while(shared, turn);
  }
  std::fflush(stdout);
}

void pass_on(Shared& shared, std::uint64_t turn) {
  shared.turn.store(turn, std::memory_order_release);
  ipc::futex_wake(ipc::low_half(shared.turn), 2);
}

void relay(Shared& shared, int bell, int turns) {
  const int loop = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.fd = bell}};
  if (loop < 0 || ::epoll_ctl(loop, EPOLL_CTL_ADD, bell, &event) != 0) std::abort();
  for (int i = 0; i < turns; ++i) {
    while (::epoll_wait(loop, &event, 1, -1) != 1) {
    }
    std::uint64_t ignored = 0;
    if (::read(bell, &ignored, sizeof(ignored)) < 0) std::abort();
    pass_on(shared, shared.turn.load(std::memory_order_relaxed) + 1);
  }
  pass_on(shared, kEnd);
}

int run(int turns) {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int bell = ::eventfd(0, EFD_CLOEXEC);
  if (memory == MAP_FAILED || bell < 0) return 1;
  auto* shared = new (memory) Shared{};
  std::array<pid_t, 2> workers{};
  for (std::uint64_t parity = 0; parity < 2; ++parity) {
    workers.at(parity) = ::fork();
    if (workers.at(parity) < 0) return 1;
    if (workers.at(parity) == 0) {
      work(*shared, parity, bell);
      ::_exit(0);
    }
  }
  relay(*shared, bell, turns);
  int failed = 0;
  for (const pid_t worker : workers) {
    int status = 0;
    ::waitpid(worker, &status, 0);
    failed |= status;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gpushare

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 2000;
  return turns > 0 ? gpushare::run(turns) : 2;
}
