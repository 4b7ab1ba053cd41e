// The one process-wide object: allocator, host tier, mover and runtime of this process, joined.
//
// Which problem it solves: torch's allocator is process-wide, and so is what stands behind it. Made
// by the first install() and leaked: tensors are freed, and other threads run, until the process is
// gone. It installs the fork handlers; at exit it gives the lease back.
//
// A forked child inherits an object that does nothing there. The child's own install() makes a new
// one, and the child can then be a job as its parent can.
//
// Installing does not talk to the coordinator. A managed process starts with room for nothing, so
// that the first chunk makes the allocator ask the runtime, which then attaches.
//
// threads: install() under the GIL; all else any.
#pragma once

#include <memory>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/binding/process/host_tier.h"
#include "csrc/binding/torch/torch_device.h"
#include "csrc/client/config.h"
#include "csrc/client/runtime.h"
#include "csrc/vm/mover.h"

namespace gpushare::binding {

class Process {
 public:
  // Without socket paths the process is unmanaged from the start, in `unmanaged_room`.
  // errors: kOutOfMemory (no address space), kIo, as TorchDevice::install. Idempotent: later
  // configurations are ignored.
  static Status install(std::unique_ptr<TorchDevice> device,
                        client::ClientConfig config,
                        log::Level level);
  // Null before install(). In a forked child the parent's object, until the child has its own.
  static Process* get();
  // Whether this very process has called install(), and not one that it was forked from.
  static bool is_installed();

  [[nodiscard]] alloc::CachingAllocator& allocator() { return *allocator_; }
  [[nodiscard]] client::Runtime& runtime() { return *runtime_; }
  [[nodiscard]] const TorchDevice& device() const { return *device_; }

 private:
  Process(std::unique_ptr<TorchDevice> device,
          std::unique_ptr<vm::HostSlab> slab,
          client::ClientConfig config)
      : config_(std::move(config)),
        device_(std::move(device)),
        host_tier_(std::move(slab), device_->pinner()) {}
  Status start();
  static void install_handlers();
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

  // Written in the child of a fork, which has one thread then; read under the GIL.
  bool is_inherited_ = false;
  const client::ClientConfig config_;
  const std::unique_ptr<TorchDevice> device_;
  HostTier host_tier_;
  vm::Mover mover_;
  std::unique_ptr<alloc::CachingAllocator> allocator_;
  std::unique_ptr<alloc::Residency> residency_;
  std::unique_ptr<client::Runtime> runtime_;
};

}  // namespace gpushare::binding
