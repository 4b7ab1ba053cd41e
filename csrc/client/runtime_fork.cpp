// fork(): the state lock is held around it, so that the child finds whole data; the child then
// leaves the coordinator to its parent.
//
// Spilled memory comes back first, however long that takes: a child would share the slots that its
// addresses show, and those are used again for other bytes. Where it cannot come back, the child
// has no access to it; neither has it to what overflows. CUDA memory is inherited by nobody, so it
// stays where it is.
#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

void Runtime::Impl::before_fork() {
  mu_.lock();
  bring_back_for_child();
  cpu_share_.before_fork();
}

void Runtime::Impl::bring_back_for_child() {
  if (link_ == Link::kForked) return;  // nobody moves memory there
  if (router_ != nullptr) return;      // a child inherits no CUDA memory
  if (const Status status = restore_and_hold(); !status.ok()) {
    log::warn("job {}: a forked child cannot use {} of memory: {}", address_.job.value,
              to_string(residency_.to_restore()), status.message());
  }
  if (const Bytes overflow = allocator_.overflow(); overflow > Bytes{0}) {
    log::warn("job {}: a forked child cannot use the {} of memory that overflow",
              address_.job.value, to_string(overflow));
  }
  add_hold(-1);  // mu_ is held, so nobody moves it before the fork
  lane_chunks_.make_live_private();
}

void Runtime::Impl::after_fork_in_parent() {
  cpu_share_.after_fork_in_parent();
  say_movable();
  mu_.unlock();
}

// Closing only takes the child's own descriptors away. No condition variable is touched: threads
// that waited on it do not exist here.
void Runtime::Impl::after_fork_in_child() {
  link_ = Link::kForked;
  connection_.close();
  bell_.reset();
  wake_.reset();
  page_.store(nullptr, std::memory_order_relaxed);  // one thread here
  pages_.clear();
  is_closed_.store(false, std::memory_order_relaxed);
  counters_.forget();
  core_share_.store(0, kRelaxed);
  cpu_share_.after_fork_in_child();
  options_.reset();
  is_registered_ = false;
  is_parked_ = false;
  inside_since_.reset();
  moving_ = Moving::kNone;
  forget_late();
  gate_owner_ = std::thread::id();
  address_ = wire::Address();
  router_ = nullptr;
  mu_.unlock();
}

}  // namespace gpushare::client
