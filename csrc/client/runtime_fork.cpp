// fork(): the state lock is held around it, so that the child finds whole data. The child then
// leaves the coordinator to its parent and allocates from torch's default allocator.
//
// Spilled memory comes back first, however long that takes. A child would share the slots that its
// addresses show, and those slots are used again for other bytes. If it cannot come back, the child
// has no access to it, and the log says so. The same holds for overflow. CUDA memory is not
// inherited by anybody, so it stays where it is.
#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/client/cpu/this_thread.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

// Leaves the lock held: one of the two handlers below lets it go, in the parent or in the child.
void Runtime::Impl::before_fork() {
  mu_.lock();
  bring_back_for_child();
  cores_.before_fork();
}

void Runtime::Impl::bring_back_for_child() {
  if (link_.is_forked()) return;   // nobody moves memory there
  if (router_ != nullptr) return;  // a child inherits no CUDA memory
  if (const Status status = restore_and_hold(); !status.ok()) {
    log::warn("job {}: a forked child cannot use {} of memory: {}", link_.job().value,
              to_string(residency_.to_restore()), status.message());
  }
  if (const Bytes overflow = allocator_.overflow(); overflow > Bytes{0}) {
    log::warn("job {}: a forked child cannot use the {} of memory that overflow", link_.job().value,
              to_string(overflow));
  }
  holds_.drop(std::this_thread::get_id());  // mu_ is held, so nobody moves it before the fork
  lane_.make_live_private();
}

// The hold for the child has ended, so the coordinator is told that memory may move again.
void Runtime::Impl::after_fork_in_parent() {
  cores_.after_fork_in_parent();
  say_movable();
  mu_.unlock();
}

// Closing only takes the child's own descriptors away. No condition variable is touched: threads
// that waited on it do not exist here.
void Runtime::Impl::after_fork_in_child() {
  forget_this_thread();
  link_.on_fork();
  thread_.on_fork();
  fast_.set_page(nullptr);
  registration_.on_fork();
  fast_.set_closed(false);
  counters_.forget();
  cores_.after_fork_in_child();
  gate_ = GateState();
  moves_.stop();
  forget_late();
  router_ = nullptr;
  mu_.unlock();
}

}  // namespace gpushare::client
