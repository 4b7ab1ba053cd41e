// A raw futex ping-pong between two processes: prints the median microseconds of there and back.
// Usage: futex_pingpong ROUNDS
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/ipc/futex.h"

namespace gpushare {
namespace {

struct Table {
  std::atomic<std::uint64_t> turn;  // even: the parent's
};

// Waits until the turn has the parity asked for, then passes it on.
void pass(Table& table, std::uint64_t parity) {
  std::uint32_t* word = ipc::low_half(table.turn);
  for (;;) {
    const std::uint64_t seen =
        table.turn.load(std::memory_order_acquire);  // pairs with the store below
    if (seen % 2 == parity) {
      table.turn.store(seen + 1, std::memory_order_release);
      ipc::futex_wake(word, 1);
      return;
    }
    ipc::futex_wait(word, static_cast<std::uint32_t>(seen), seconds(1));
  }
}

double median_round_trip_us(Table& table, int rounds) {
  std::vector<std::int64_t> times;
  for (int i = 0; i < rounds; ++i) {
    const Nanos begun = monotonic_now();
    pass(table, 0);
    std::uint32_t* word = ipc::low_half(table.turn);
    std::uint64_t seen = table.turn.load(std::memory_order_acquire);  // pairs with pass's release
    while (seen % 2 != 0) {
      ipc::futex_wait(word, static_cast<std::uint32_t>(seen), seconds(1));
      seen = table.turn.load(std::memory_order_acquire);  // pairs with pass's release
    }
    times.push_back((monotonic_now() - begun).value());
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return static_cast<double>(times[static_cast<std::size_t>(rounds) / 2]) * 1e-3;
}

int run(int rounds) {
  void* memory =
      ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* table = new (memory) Table{};
  const pid_t child = ::fork();
  if (child < 0) return 1;
  if (child == 0) {
    for (int i = 0; i < rounds; ++i)
      pass(*table, 1);
    ::_exit(0);
  }
  std::printf("%.3f\n", median_round_trip_us(*table, rounds));
  ::waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace gpushare

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20000;
  return rounds > 0 ? gpushare::run(rounds) : 2;
}
