// Two jobs' memory at once: one process spills while the other restores, against the same two
// moves one after the other; and two memcpys at once against one, which is what the bus allows.
// Prints lines of a name and seconds:
//   alone     a spill, then a restore, nobody else at work
//   both      the same at once, until both are done
//   copy_one, copy_two   a memcpy of as many bytes between touched huge pages; two of them at once
// Usage: spill_pair_bench MIB ROUNDS
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "benchmarks/cpp/huge_pages.h"
#include "benchmarks/cpp/spill_world.h"

#include "csrc/base/check.h"
#include "csrc/base/clock.h"

namespace gpushare::benchmarks {
namespace {

// Shared by the two processes.
struct Table {
  pthread_barrier_t barrier;
  double seconds[2];  // each process's last move
};

Table* make_table() {
  void* const memory =
      ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  GS_CHECK(memory != MAP_FAILED, "errno {}", errno);
  auto* const table = new (memory) Table{};
  pthread_barrierattr_t attributes;
  ::pthread_barrierattr_init(&attributes);
  ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  GS_CHECK(::pthread_barrier_init(&table->barrier, &attributes, 2) == 0, "barrier");
  return table;
}

void meet(Table& table) { ::pthread_barrier_wait(&table.barrier); }

// One of the two processes: alone, its resident memory leaves and comes back by turns with the
// other's; then one spills while the other restores.
void take_part(Table& table, int self, Bytes size, int rounds) {
  SpillWorld world(size, "");
  const auto move = [&](bool spills) {
    table.seconds[self] = spills ? world.spill() : world.restore();
  };
  if (self == 1) move(true);  // so that it has something to restore
  bool spills = self == 0;
  for (int round = 0; round < rounds; ++round) {
    double alone = 0;
    for (const int turn : {0, 1}) {
      meet(table);
      if (turn == self) move(spills);
      meet(table);
      if (self == 0) alone += table.seconds[turn];
    }
    if (self == 0) std::printf("alone %.6f\n", alone);
    spills = !spills;
    meet(table);
    move(spills);
    meet(table);
    if (self == 0) std::printf("both %.6f\n", std::max(table.seconds[0], table.seconds[1]));
    spills = !spills;
  }
  meet(table);
}

void time_copies(Bytes size, int rounds) {
  const HugePages from(size);
  const HugePages to(size);
  const HugePages other_from(size);
  const HugePages other_to(size);
  for (int round = 0; round < rounds; ++round) {
    Nanos begun = monotonic_now();
    std::memcpy(to.data(), from.data(), size.to_size());
    std::printf("copy_one %.6f\n", seconds_since(begun));
    begun = monotonic_now();
    std::thread second([&] { std::memcpy(other_to.data(), other_from.data(), size.to_size()); });
    std::memcpy(to.data(), from.data(), size.to_size());
    second.join();
    std::printf("copy_two %.6f\n", seconds_since(begun));
  }
}

int run(Bytes size, int rounds) {
  Table* const table = make_table();
  const pid_t child = ::fork();  // before anything has a thread
  GS_CHECK(child >= 0, "errno {}", errno);
  take_part(*table, child == 0 ? 1 : 0, size, rounds);
  if (child == 0) return 0;
  int status = 0;
  ::waitpid(child, &status, 0);
  GS_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status {}", status);
  time_copies(size, rounds);
  return 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  const int size = argc > 2 ? std::atoi(argv[1]) : 0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 0;
  if (size <= 0 || rounds <= 0) return 2;
  return gpushare::benchmarks::run(gpushare::mib(size), rounds);
}
