// Making and stopping the runtime; its public functions only forward to Impl (runtime_impl.h).
//
// Stopping joins the client thread. While the process exits that may not be possible: the thread
// may be in a long copy, or parts that it uses may be gone. Then it is waited for a moment, and
// left as it is together with its Impl.
#include "csrc/client/runtime.h"

#include <string>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/process/process_exit.h"
#include "csrc/client/runtime_impl.h"

namespace gpushare::client {

Runtime::Impl::Impl(ClientConfig config,
                    alloc::CachingAllocator& allocator,
                    alloc::Residency& residency)
    : config_(std::move(config)), allocator_(allocator), residency_(residency), lane_(allocator) {
  watch_process_exit();
}

Runtime::Impl::~Impl() = default;

bool Runtime::Impl::stop() {
  thread_.ask_to_stop();
  {
    MutexLock lock(mu_);
    if (link_.is_forked()) return false;
  }
  if (!thread_.is_started()) return true;
  thread_.wake();
  if (process_is_exiting()) {
    // How long an exiting process waits for the thread; it ends with it or without it.
    constexpr Nanos kGrace = millis(200);
    MutexLock lock(mu_);
    const Nanos deadline = monotonic_now() + kGrace;
    while (!thread_.is_done() && monotonic_now() < deadline)
      changed_.wait_for(mu_, kGrace);
    if (!thread_.is_done()) return false;
  }
  thread_.join();
  return true;
}

Runtime::Runtime(ClientConfig config,
                 alloc::CachingAllocator& allocator,
                 alloc::Residency& residency)
    : impl_(std::make_unique<Impl>(std::move(config), allocator, residency)) {}

Runtime::~Runtime() {
  // The thread could not be joined and may still use the object, so it is left in place. The
  // process is about to end.
  if (!impl_->stop()) static_cast<void>(impl_.release());
}

// From here on only the calls that are forwarded. Each is explained in runtime.h.
Status Runtime::attach() { return impl_->attach(); }
bool Runtime::is_managed() const { return impl_->is_managed(); }
Status Runtime::register_job(const RegisterOptions& options) {
  return impl_->register_job(options);
}
void Runtime::unregister_job() { impl_->unregister_job(); }
void Runtime::unregister_at_exit() { impl_->unregister_at_exit(); }
void Runtime::regain_cores() { impl_->regain_cores(); }
Result<GateResult> Runtime::begin_iteration(Nanos timeout) {
  return impl_->begin_iteration(timeout);
}
Result<bool> Runtime::enter_at_once() { return impl_->enter_at_once(); }
void Runtime::give_up() { impl_->give_up(); }
void Runtime::show_memory() { impl_->show_memory(); }
bool Runtime::may_be_interrupted() const { return impl_->may_be_interrupted(); }
bool Runtime::is_asked_inside() const { return impl_->is_asked_inside(); }
bool Runtime::is_in_iteration_here(Safepoint where) const {
  return impl_->is_in_iteration_here(where);
}
GateResult Runtime::safepoint(Safepoint where, Nanos timeout) {
  return impl_->safepoint(where, timeout);
}
bool Runtime::leave_safepoint() { return impl_->leave_safepoint(); }
bool Runtime::is_asked() const { return impl_->is_asked(); }
bool Runtime::end_at_once(wire::BoundaryKind kind, bool is_optimizer_step) {
  return impl_->end_at_once(kind, is_optimizer_step);
}
void Runtime::close_at_boundary() { impl_->close_at_boundary(); }
void Runtime::end_iteration(wire::BoundaryKind kind, bool is_optimizer_step) {
  if (end_at_once(kind, is_optimizer_step)) close_at_boundary();
}
bool Runtime::is_in_iteration() const { return impl_->is_in_iteration(); }
bool Runtime::has_late() const { return impl_->has_late(); }
void Runtime::wait_for_late() { impl_->wait_for_late(); }
std::uint64_t Runtime::num_leases() const { return impl_->num_leases(); }
void Runtime::close_lease(wire::BoundaryKind kind) { impl_->close_lease(kind); }
void Runtime::set_router(Router* router) { impl_->set_router(router); }
void Runtime::promise_iterations() { impl_->promise_iterations(); }
void Runtime::park() { impl_->park_in_gap(); }
Status Runtime::hold() { return impl_->hold(); }
void Runtime::let_go() { impl_->let_go(); }
std::string Runtime::explain(Nanos timeout) { return impl_->explain(timeout); }
Status Runtime::spill_and_restore() { return impl_->spill_and_restore(); }
JobStats Runtime::stats() const { return impl_->stats(); }
Bytes Runtime::share() const { return impl_->share(); }
Status Runtime::grow(const alloc::RoomRequest& request) { return impl_->grow(request); }
void Runtime::before_fork() { impl_->before_fork(); }
void Runtime::after_fork_in_parent() { impl_->after_fork_in_parent(); }
void Runtime::after_fork_in_child() { impl_->after_fork_in_child(); }

}  // namespace gpushare::client
