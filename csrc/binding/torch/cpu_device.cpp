// The CPU as the shared device. Memory is that of the host, and our caching allocator becomes
// torch's. A forked child uses torch's default allocator for new memory.
#include "csrc/binding/torch/cpu_allocator.h"
#include "csrc/binding/torch/torch_device.h"
#include "csrc/vm/host/host_vmm.h"

namespace gpushare::binding {
namespace {

// pre of live(): install() has been called.
class CpuDevice final : public TorchDevice {
 public:
  [[nodiscard]] vm::Vmm& vmm() override { return vmm_; }
  Status install(alloc::CachingAllocator& allocator, client::Runtime& /*runtime*/) override {
    allocator_ = &allocator;
    install_cpu_allocator(allocator);
    return {};
  }
  void after_fork_in_child() override { use_default_cpu_allocator(); }
  [[nodiscard]] Bytes live() const override { return allocator_->live_private(); }

 private:
  vm::HostVmm vmm_;
  alloc::CachingAllocator* allocator_ = nullptr;
};

}  // namespace

std::unique_ptr<TorchDevice> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace gpushare::binding
