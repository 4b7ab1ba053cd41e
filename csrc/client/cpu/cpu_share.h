// The cores that this process keeps to while it runs beside others on a CPU
// (sched/side_by_side/core_shares.h).
//
// Its threads are bound to the cores of its share while it has a lease, if no more of them work on
// an operation than those have CPUs: results are the same wherever a thread runs. Where its user
// allowed that, the number of threads that work on an operation is lowered until they fit; sums
// then add up in another order. Where they do not fit, nothing is changed.
//
// Only threads are bound that may use the same CPUs as the one that iterates: who pins threads of
// his own (GOMP_CPU_AFFINITY) keeps them where they are. Threads and processes that begin meanwhile
// are bound as the thread that began them; a forked child is not, but its number of threads stays.
// The number of threads is torch's setting for the thread that iterates. If another thread iterates
// from then on, the first one keeps the lower number.
//
// Each process goes by the CPUs that it may use: jobs that were started with different ones
// (taskset) may come to keep to the same.
//
// threads: settle() on the one that iterates; the others any.
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/client/cpu/cpus.h"
#include "csrc/wire/core_share.h"

namespace gpushare::client {

// How many threads of this process work on one operation; null: not known, and none is bound.
struct WorkerThreads {
  int (*num)() = nullptr;
  // pre: called on the thread that iterates.
  void (*set_num)(int) = nullptr;
};

class CpuShare {
 public:
  explicit CpuShare(WorkerThreads threads) : threads_(threads) {}

  // At a boundary. The share is in force when it returns; all of the CPUs: as before the first.
  void settle(wire::CoreShare share, bool may_lower) GS_EXCLUDES(mu_);
  // All CPUs are free to its threads again; their number stays until the next settle().
  void release() GS_EXCLUDES(mu_);
  void before_fork() GS_NO_THREAD_SAFETY_ANALYSIS { mu_.lock(); }
  void after_fork_in_parent() GS_NO_THREAD_SAFETY_ANALYSIS { mu_.unlock(); }
  // The child may use all CPUs.
  void after_fork_in_child() GS_NO_THREAD_SAFETY_ANALYSIS;

  // For status. CPUs that its threads are bound to; 0: to none.
  [[nodiscard]] std::size_t num_bound() GS_EXCLUDES(mu_);

 private:
  void lower_threads(int most) GS_REQUIRES(mu_);
  void restore_threads() GS_REQUIRES(mu_);
  // Takes over what the calling thread may use. false: not known.
  bool read_own() GS_REQUIRES(mu_);
  void bind(const std::vector<std::size_t>& cpus) GS_REQUIRES(mu_);
  void unbind() GS_REQUIRES(mu_);

  const WorkerThreads threads_;
  Mutex mu_;
  cpu_set_t own_ GS_GUARDED_BY(mu_){};                 // what it may use but for the share
  std::vector<Cpu> cpus_ GS_GUARDED_BY(mu_);           // of own_
  std::optional<cpu_set_t> bound_ GS_GUARDED_BY(mu_);  // while it is
  std::optional<int> own_num_ GS_GUARDED_BY(mu_);      // of threads, before it was lowered
  int lowered_to_ GS_GUARDED_BY(mu_) = 0;
};

}  // namespace gpushare::client
