// Which arena serves new allocations: our own, and where torch has an allocator of its own, its
// too.
#include <utility>

#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

// Before the lock is taken for a close: the device may have much to do, and nobody waits for it
// under the lock.
void Runtime::Impl::drain() const {
  if (router_ != nullptr && !is_closed_.load(std::memory_order_relaxed)) router_->drain();
}

// From here on no private block is handed out. errors: kFailedPrecondition: not now.
Status Runtime::Impl::route_outside() {
  const bool is_open = allocator_.route() == alloc::Route::kPrivate;
  // Before the use is read: a segment that is given back and taken again after that would pass for
  // unused.
  allocator_.set_route(alloc::Route::kOutside);
  if (router_ == nullptr || !is_open) return {};
  Result<alloc::MemoryUse> use = router_->close();
  if (!use.has_value()) {
    allocator_.set_route(alloc::Route::kPrivate);
    return std::move(use.error());
  }
  allocator_.note_use(*use);
  return {};
}

// pre: all private memory is in place, or shown where it is.
void Runtime::Impl::route_private() {
  const bool is_open = allocator_.route() == alloc::Route::kPrivate;
  allocator_.set_route(alloc::Route::kPrivate);
  if (router_ != nullptr && !is_open) router_->open();
}

}  // namespace gpushare::client
