// Makes the process's one object, in this order: host slab, allocator, residency, runtime,
// handlers, and last the device's own installation. From that last step on torch's memory comes
// from us, so all that it may call is in place before. A failure leaves torch as it was.
//
// The object is published in g_process only when all is installed, and never destroyed. The
// handlers of exit and fork find it there, or find nothing and do nothing.
//
// A fork takes all locks before it and lets go of them on both sides. The child would otherwise
// inherit a lock that is held by a thread which does not exist there.
#include "csrc/binding/process/process.h"

#include <pthread.h>

#include <cstdlib>
#include <string>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "csrc/base/process/process_exit.h"
#include "csrc/binding/python/interrupts.h"
#include "csrc/vm/calls/address_limit.h"

namespace gpushare::binding {
namespace {

// Written by install() under the GIL, once in each process.
Process* g_process = nullptr;

template <typename Body>
void of_process(Body body) {
  if (g_process != nullptr) body(*g_process);
}

}  // namespace

Process* Process::get() { return g_process; }

bool Process::is_installed() { return g_process != nullptr && !g_process->is_inherited_; }

// What the client layer needs of torch and Python is handed to it as plain functions, so it
// includes neither.
Status Process::install(std::unique_ptr<TorchDevice> device,
                        client::ClientConfig config,
                        log::Level level) {
  if (is_installed()) return {};
  config.is_in_parallel_region = [] { return at::in_parallel_region(); };
  config.worker_threads = {.num = [] { return at::get_num_threads(); },
                           .set_num = [](int num) { at::set_num_threads(num); }};
  config.is_interrupted = &is_interrupted;
  config.has_signal = &has_signal;
  config.device_memory = [shared = device.get()] { return shared->memory(); };
  log::configure(level, "gpushare");
  // Before a coordinator has said more there is no limit: `gpushare verify` spills memory without
  // one.
  Result<std::unique_ptr<vm::HostSlab>> slab =
      vm::make_host_slab("", kNoHostLimit, device->pinner());
  if (!slab) return slab.error();
  std::unique_ptr<Process> process(
      new Process(std::move(device), *std::move(slab), std::move(config)));
  GS_RETURN_IF_ERROR(process->start());
  install_handlers();
  GS_RETURN_IF_ERROR(process->device_->install(*process->allocator_, *process->runtime_));
  g_process = process.release();
  return {};
}

// A managed process starts with no room. So its first chunk makes the allocator ask the runtime,
// which then attaches to a coordinator. An unmanaged process has the room of its setting from the
// start.
Status Process::start() {
  const bool is_managed = !config_.socket_paths.empty();
  alloc::AllocatorOptions options;
  options.address_space = vm::address_space_for(options.address_space);
  options.initial_room = is_managed ? Bytes{0} : config_.unmanaged_room;
  Result<std::unique_ptr<alloc::CachingAllocator>> allocator =
      alloc::CachingAllocator::create(device_->vmm(), options);
  if (!allocator) {
    // No memory of torch's is asked for here, so it is no out-of-memory error of the program.
    return {
        StatusCode::kFailedPrecondition,
        fmt::format("{}. Is the address space limited (ulimit -v)?", allocator.error().message())};
  }
  allocator_ = *std::move(allocator);
  residency_ = std::make_unique<alloc::Residency>(*allocator_, host_tier_, mover_);
  if (config_.overflow) residency_->allow_overflow();
  client::ClientConfig config = config_;
  config.configure_host_tier = [this](const std::string& folder, const HostBytes& budgets) {
    host_tier_.configure(folder, budgets);
  };
  runtime_ = std::make_unique<client::Runtime>(std::move(config), *allocator_, *residency_);
  if (is_managed) allocator_->set_room_source(runtime_.get());
  return {};
}

// The handlers cannot be removed, so they are installed once, even if the device then fails and
// install() is called again.
void Process::install_handlers() {
  static const bool is_done = [] {
    watch_process_exit();
    // The lease would go with the process anyway. Others get it sooner if it is given back before a
    // long teardown.
    std::atexit(
        [] { of_process([](Process& process) { process.runtime_->unregister_at_exit(); }); });
    ::pthread_atfork([] { of_process([](Process& process) { process.before_fork(); }); },
                     [] { of_process([](Process& process) { process.after_fork_in_parent(); }); },
                     [] { of_process([](Process& process) { process.after_fork_in_child(); }); });
    return true;
  }();
  static_cast<void>(is_done);
}

// In the lock order of csrc/README.md. The host tier's lock comes last: under it none of the others
// is taken.
void Process::before_fork() {
  runtime_->before_fork();
  allocator_->before_fork();
  host_tier_.before_fork();
}

// In the reverse order of before_fork().
void Process::after_fork_in_parent() {
  host_tier_.after_fork();
  allocator_->after_fork_in_parent();
  runtime_->after_fork_in_parent();
}

// The child is no job before it installs an object of its own: this one has no device, no mover
// thread and no coordinator there. The device goes first, so that on the CPU new memory of the
// child comes from torch's default allocator.
void Process::after_fork_in_child() {
  is_inherited_ = true;
  device_->after_fork_in_child();
  host_tier_.after_fork();
  allocator_->after_fork_in_child();
  mover_.after_fork_in_child();
  runtime_->after_fork_in_child();
}

}  // namespace gpushare::binding
