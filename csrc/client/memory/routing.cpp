// Which arena serves new allocations: our own, and where torch has an allocator of its own (CUDA),
// its too. Both go outside together at a close, ours first. If torch's cannot be closed now, ours
// is opened again and the caller tries later.
#include <utility>

#include "csrc/base/log.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

// Waits for the device before the lock is taken for a close. The device may have much to do, and
// nobody should wait for it under the lock; close() then finds little left.
void Runtime::Impl::drain() const {
  if (router_ != nullptr && !fast_.is_closed()) router_->drain();
}

// From here on no private block is handed out. errors: kFailedPrecondition: not now.
Status Runtime::Impl::route_outside() {
  const bool is_open = allocator_.route() == alloc::Route::kPrivate;
  // Our own route changes before torch's use is read. A segment that is given back and taken again
  // after the reading would pass for unused.
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
