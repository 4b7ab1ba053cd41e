// What the fast paths read without the state lock: begin, end, and the questions that are asked at
// each safepoint and step.
//
// Which problem it solves: an iteration under an open lease must cost no lock and no system call.
// So these five facts are atomics. All but iterating_thread are written by whoever holds the state
// lock, so whoever holds it reads them as they are.
//
// Why the reads may be relaxed: a fact that is seen late leads to the slow path, which looks again
// under the lock, or it is the reading thread's own. The page alone needs more, since its contents
// must be seen with it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "csrc/client/cpu/this_thread.h"
#include "csrc/client/gate/iteration_times.h"
#include "csrc/wire/lease_page.h"

namespace gpushare::client {

class FastState {
 public:
  // The page in use; null: there is no gate. threads: any.
  [[nodiscard]] wire::LeasePage* page() const {
    // acquire; pairs with the release in set_page(): the page is mapped and filled.
    return page_.load(std::memory_order_acquire);
  }
  // pre: the state lock, which orders it after set_page().
  [[nodiscard]] wire::LeasePage* page_under_lock() const { return page_.load(kRelaxed); }
  // pre: `page` is filled.
  void set_page(wire::LeasePage* page) {
    // release; pairs with the acquire in page().
    page_.store(page, std::memory_order_release);
  }

  // Private memory may be gone and the route is kOutside: the next begin takes the slow path. The
  // thread that iterates sees its own writes. Where another thread closed, the word's new state
  // tells it.
  [[nodiscard]] bool is_closed() const { return is_closed_.load(kRelaxed); }
  void set_closed(bool is_closed) { is_closed_.store(is_closed, kRelaxed); }

  // The iteration began without memory that it needs late. The iterating thread sees its own
  // writes, and a step that misses another's finds nothing to do.
  [[nodiscard]] bool has_late() const { return has_late_.load(kRelaxed); }
  void set_late(bool has_late) { has_late_.store(has_late, kRelaxed); }

  // The kernel's number of the thread that began the iteration; 0 before the first. Only compared.
  [[nodiscard]] pid_t iterating_thread() const { return iterating_thread_.load(kRelaxed); }
  void set_iterating_here() { iterating_thread_.store(this_thread(), kRelaxed); }
  // Whether the calling thread has begun the iteration under way, or the last one.
  [[nodiscard]] bool is_iterating_here() const { return iterating_thread() == this_thread(); }

  // Leases so far. Only compared.
  [[nodiscard]] std::uint64_t num_leases() const { return num_leases_.load(kRelaxed); }
  void count_lease() { num_leases_.fetch_add(1, kRelaxed); }

 private:
  std::atomic<wire::LeasePage*> page_{nullptr};
  std::atomic<bool> is_closed_{false};
  std::atomic<bool> has_late_{false};
  std::atomic<pid_t> iterating_thread_{0};
  std::atomic<std::uint64_t> num_leases_{0};
};

}  // namespace gpushare::client
