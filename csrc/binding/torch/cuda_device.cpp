// One CUDA device as the shared device. torch keeps its own caching allocator; the segment plugin
// supplies its segments, and the router opens and closes it with the lease gate.
//
// The installation goes in this order: the store of segments, the router, then the plugin. With the
// plugin in place torch's segments come from us. What may go wrong: the driver, the device or
// torch's libraries are not as expected. All of these are kFailedPrecondition, and nothing of torch
// has changed then. A missing line in the log when memory runs out is no reason to fail.
#include "csrc/vm/cuda/cuda_device.h"

#include <memory>
#include <utility>

#include "csrc/alloc/allocator/segment_store.h"
#include "csrc/base/log.h"
#include "csrc/binding/torch/torch_device.h"
#include "csrc/binding/torch/torch_router.h"
#include "csrc/plugin/segment_plugin.h"
#include "csrc/vm/cuda/cuda_pinner.h"
#include "csrc/vm/cuda/cuda_vmm.h"

namespace gpushare::binding {
namespace {

class CudaDevice;
// The device of this process, for the free functions at the end. Written at install(), and set to
// null in a forked child, which has no CUDA.
CudaDevice* g_device = nullptr;

class CudaDevice final : public TorchDevice {
 public:
  CudaDevice(std::unique_ptr<vm::CudaDriver> driver,
             std::unique_ptr<vm::CudaDevice> device,
             const CudaOptions& options)
      : driver_(std::move(driver)),
        device_(std::move(device)),
        options_(options),
        vmm_(*device_, {.shows_spilled = options.reachable}),
        pinner_(*device_, options.reachable) {}

  [[nodiscard]] vm::Vmm& vmm() override { return vmm_; }
  [[nodiscard]] vm::HostPinner* pinner() override { return &pinner_; }

  Status install(alloc::CachingAllocator& allocator, client::Runtime& runtime) override {
    if (!vmm_.shows_spilled()) {
      log::info("spilled memory cannot be reached: {}",
                options_.reachable ? "the device cannot use memory of the host in place"
                                   : "GPUSHARE_REACHABLE=off");
    }
    store_ = std::make_unique<alloc::SegmentStore>(allocator);
    store_->set_share_source([&runtime] { return runtime.share(); });
    router_ = std::make_unique<TorchRouter>(*device_, *store_);
    // Under passthrough the segments are the runtime's own and nothing moves, so nobody has to
    // close torch's allocator.
    if (!options_.passthrough) runtime.set_router(router_.get());
    GS_RETURN_IF_ERROR(plugin::install_segment_plugin({.store = store_.get(),
                                                       .device = device_->ordinal(),
                                                       .passthrough_all = options_.passthrough,
                                                       .libraries = {}}));
    g_device = this;
    // If this fails, torch's own text about the lack of memory is still there.
    if (const Status watched = say_why_out_of_memory(&plugin::take_refusal); !watched.ok()) {
      log::warn("{}", watched.message());
    }
    return {};
  }
  // A forked child cannot use CUDA. The plugin knows of the fork by itself.
  void after_fork_in_child() override {
    g_device = nullptr;
    is_forked_ = true;
  }
  [[nodiscard]] std::optional<client::DeviceMemory> memory() override {
    const Result<vm::CudaDevice::Memory> memory = device_->memory_info();
    if (!memory) return std::nullopt;
    return client::DeviceMemory{.total = memory->total, .free = memory->free};
  }
  [[nodiscard]] Bytes live() const override { return is_forked_ ? Bytes{} : router_->live(); }
  // While it is set, the plugin passes this thread's segments through, and the router's filter
  // sends the thread's blocks to the shared pool. If torch refuses, it is taken back.
  Status begin_sharing() {
    plugin::set_passthrough(true);
    Status status = router_->begin_sharing();
    if (!status.ok()) plugin::set_passthrough(false);
    return status;
  }
  void end_sharing() {
    router_->end_sharing();
    plugin::set_passthrough(false);
  }
  void note_capture(bool is_beginning) { router_->note_capture(is_beginning); }

 private:
  const std::unique_ptr<vm::CudaDriver> driver_;
  const std::unique_ptr<vm::CudaDevice> device_;
  const CudaOptions options_;
  vm::CudaVmm vmm_;
  vm::CudaPinner pinner_;
  std::unique_ptr<alloc::SegmentStore> store_;
  std::unique_ptr<TorchRouter> router_;
  bool is_forked_ = false;
};

struct Opened {
  std::unique_ptr<vm::CudaDriver> driver;
  std::unique_ptr<vm::CudaDevice> device;  // goes first
};

// Opens driver and device. errors: kFailedPrecondition, whatever is wrong with either of them.
Result<Opened> open_device(int index) {
  Result<std::unique_ptr<vm::CudaDriver>> driver = vm::CudaDriver::load();
  if (!driver) return fail(StatusCode::kFailedPrecondition, driver.error().message());
  Result<std::unique_ptr<vm::CudaDevice>> device = vm::CudaDevice::open(**driver, index);
  if (!device) return fail(StatusCode::kFailedPrecondition, device.error().message());
  return Opened{*std::move(driver), *std::move(device)};
}

}  // namespace

Result<std::unique_ptr<TorchDevice>> make_cuda_device(int index, const CudaOptions& options) {
  Result<Opened> opened = open_device(index);
  if (!opened) return fail(std::move(opened.error()));
  return std::make_unique<CudaDevice>(std::move(opened->driver), std::move(opened->device),
                                      options);
}

// Driver and device are closed again at the end.
Result<CudaDeviceInfo> cuda_device_info(int index) {
  const Result<Opened> opened = open_device(index);
  if (!opened) return fail(opened.error());
  const vm::CudaDevice& device = *opened->device;
  int version = 0;
  // Cannot fail after the driver was started; 0 says that it did.
  if (device.calls().get_version(&version) != vm::cuda::kSuccess) version = 0;
  return CudaDeviceInfo{index,          device.uuid(), device.name(),
                        device.total(), version,       device.has_host_memory()};
}

void note_capture(bool is_beginning) {
  if (g_device != nullptr) g_device->note_capture(is_beginning);
}

Status begin_sharing() { return g_device != nullptr ? g_device->begin_sharing() : Status(); }

void end_sharing() {
  if (g_device != nullptr) g_device->end_sharing();
}

}  // namespace gpushare::binding
