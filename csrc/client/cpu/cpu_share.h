// The cores that this process keeps to while it runs beside others on a CPU
// (sched/side_by_side/core_shares.h).
//
// While the process has a lease, its threads are bound to the cores of its share. That is done only
// if these cores have a CPU for each thread that works on an operation. Results are the same
// wherever a thread runs. If the user allows it, fewer threads work on an operation until they fit.
// Sums then add up in another order. If they do not fit, nothing is changed.
//
// A thread is bound only if it may use the same CPUs as the one that iterates, so threads that the
// user has pinned (GOMP_CPU_AFFINITY) stay where they are. A thread or process that begins
// meanwhile is bound as the thread that began it. A forked child is not bound, but keeps its number
// of threads. That number is torch's setting for the thread that iterates. If another thread
// iterates from then on, the first one keeps the lower number.
//
// Each process divides the CPUs that it may use. Jobs that were started with different CPUs
// (taskset) may therefore be bound to the same ones.
//
// threads: settle() is for the thread that iterates, the others for any.
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

  // Called at a boundary. The share is in force when it returns. With a share of all CPUs the
  // process is as it was before the first call.
  void settle(wire::CoreShare share, bool may_lower) GS_EXCLUDES(mu_);
  // The process's threads may use all CPUs again. Their number stays until the next settle().
  void release() GS_EXCLUDES(mu_);
  void before_fork() GS_NO_THREAD_SAFETY_ANALYSIS { mu_.lock(); }
  void after_fork_in_parent() GS_NO_THREAD_SAFETY_ANALYSIS { mu_.unlock(); }
  // The child may use all CPUs.
  void after_fork_in_child() GS_NO_THREAD_SAFETY_ANALYSIS;

  // How many CPUs the process's threads are bound to, for status; 0: they are not bound.
  [[nodiscard]] std::size_t num_bound() GS_EXCLUDES(mu_);

 private:
  void lower_threads(int most) GS_REQUIRES(mu_);
  void restore_threads() GS_REQUIRES(mu_);
  // Reads which CPUs the calling thread may use. false: not known.
  bool read_own() GS_REQUIRES(mu_);
  void bind(const std::vector<std::size_t>& cpus) GS_REQUIRES(mu_);
  void unbind() GS_REQUIRES(mu_);

  const WorkerThreads threads_;
  Mutex mu_;
  cpu_set_t own_ GS_GUARDED_BY(mu_){};                 // what it may use without the share
  std::vector<Cpu> cpus_ GS_GUARDED_BY(mu_);           // of own_
  std::optional<cpu_set_t> bound_ GS_GUARDED_BY(mu_);  // empty: it is not bound
  std::optional<int> own_num_ GS_GUARDED_BY(mu_);      // of threads, before it was lowered
  int lowered_to_ GS_GUARDED_BY(mu_) = 0;
};

}  // namespace gpushare::client
