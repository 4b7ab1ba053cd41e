// Keeps the process to its share of the cores while it iterates, and notices at each boundary
// whether that share has changed.
//
// Which problem it solves: binding threads reads files of /proc and calls the kernel, and a
// boundary must cost well under a microsecond. So the share in force is remembered, and settle()
// compares: while nothing has changed it costs a few relaxed loads. CpuShare does the binding.
//
// Invariant: if share_ is a share, the process's threads are bound as CpuShare::settle left them
// for that share and thread_.
//
// threads: settle() on the thread that iterates, release() on any that closes the lease. All
// atomics are relaxed: a share that is seen late is that of the next iteration.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "csrc/client/cpu/cpu_share.h"
#include "csrc/client/cpu/this_thread.h"
#include "csrc/client/gate/iteration_times.h"
#include "csrc/wire/core_share.h"

namespace gpushare::client {

class IterationCores {
 public:
  explicit IterationCores(WorkerThreads threads) : cpu_share_(threads) {}

  // Before the first iteration. Whether fewer threads may work on an operation beside other jobs.
  void set_elastic(bool is_elastic) { is_elastic_.store(is_elastic, kRelaxed); }

  // At the beginning of an iteration of the calling thread. `share` is that of the lease page, 0
  // for all cores. Binds the process if the share has changed, or another thread iterates now.
  void settle(std::uint32_t share) {
    const bool is_same_thread = share == 0 || thread_.load(kRelaxed) == this_thread();
    if (share == share_.load(kRelaxed) && is_same_thread) return;
    share_.store(share, kRelaxed);
    thread_.store(this_thread(), kRelaxed);
    cpu_share_.settle(wire::core_share_of(share), is_elastic_.load(kRelaxed));
  }
  // The lease has ended: the process's threads may run on all cores again.
  void release() {
    if (share_.load(kRelaxed) == 0) return;
    share_.store(kUnsettled, kRelaxed);
    cpu_share_.release();
  }
  // How many CPUs the process keeps to; 0: all that it may use.
  [[nodiscard]] std::size_t num_bound() { return cpu_share_.num_bound(); }

  void before_fork() { cpu_share_.before_fork(); }
  void after_fork_in_parent() { cpu_share_.after_fork_in_parent(); }
  void after_fork_in_child() {
    share_.store(0, kRelaxed);
    cpu_share_.after_fork_in_child();
  }

 private:
  // No share of any page: the next settle() takes effect, whatever it is.
  static constexpr std::uint32_t kUnsettled = UINT32_MAX;

  CpuShare cpu_share_;
  std::atomic<std::uint32_t> share_{0};  // in force, as on the page
  std::atomic<pid_t> thread_{0};         // that iterated when it came to be in force
  std::atomic<bool> is_elastic_{false};
};

}  // namespace gpushare::client
