// Which device can be used, and when its context is current.
//
// open() asks only what needs no context. It refuses a device that cannot map memory or export it
// as a file descriptor, or whose smallest mapping does not divide a chunk. Whether the device can
// use host memory is asked too, but its absence is no error.
//
// The context comes with the first CudaScope. It is the primary one, which torch uses as well. Each
// scope puts back what was current on its thread: the thread is the user's. In a forked child, and
// once exit() has begun, nothing of the driver is called.
#include "csrc/vm/cuda/cuda_device.h"

#include <unistd.h>

#include <array>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/log.h"
#include "csrc/base/process/process_exit.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::vm {
namespace {

// As nvidia-smi has it. For a part of a GPU the driver gives the UUID of that part, but only the
// name says that it is one: "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
std::string uuid_text(const cuda::Uuid& uuid, const std::string& name) {
  std::string text = name.find(" MIG ") == std::string::npos ? "GPU" : "MIG";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaDriver& driver, int ordinal) {
  int count = 0;
  cuda::Code code = driver.calls().device_count(&count);
  if (code != cuda::kSuccess) return fail(driver.to_status(code, "count the CUDA devices"));
  if (ordinal < 0 || ordinal >= count) {
    return fail(StatusCode::kInvalidArgument,
                fmt::format("there is no CUDA device {}: this process sees {}, numbered from 0",
                            ordinal, count));
  }
  cuda::Device handle = 0;
  code = driver.calls().device_get(&handle, ordinal);
  if (code != cuda::kSuccess) {
    return fail(driver.to_status(code, fmt::format("find CUDA device {}", ordinal)));
  }
  watch_process_exit();
  std::unique_ptr<CudaDevice> device(new CudaDevice(driver, ordinal, handle));
  if (Status identified = device->identify(); !identified.ok()) return fail(std::move(identified));
  if (Status able = device->check_abilities(); !able.ok()) return fail(std::move(able));
  device->look_for_host_memory();
  return device;
}

CudaDevice::CudaDevice(const CudaDriver& driver, int ordinal, cuda::Device device)
    : driver_(driver), ordinal_(ordinal), device_(device), owner_(::getpid()) {}

// A context that was never made need not be released. In a forked child the context is the
// parent's.
CudaDevice::~CudaDevice() {
  if (context_.load(std::memory_order_acquire) == nullptr || !is_usable()) return;
  const cuda::Code code = calls().context_release(device_);
  if (code != cuda::kSuccess) {
    log::error("{}", driver_.to_status(code, "release the primary context").message());
  }
}

// Name, UUID and size need no context, so `gpushare doctor` can ask for them without taking memory
// of the device.
Status CudaDevice::identify() {
  const std::string what = fmt::format("ask what CUDA device {} is", ordinal_);
  std::array<char, 256> name{};
  cuda::Code code = calls().device_name(name.data(), static_cast<int>(name.size()) - 1, device_);
  if (code != cuda::kSuccess) return driver_.to_status(code, what);
  name_ = name.data();
  cuda::Uuid uuid{};
  code = calls().device_uuid(&uuid, device_);
  if (code != cuda::kSuccess) return driver_.to_status(code, what);
  uuid_ = uuid_text(uuid, name_);
  std::size_t total = 0;
  code = calls().device_size(&total, device_);
  total_ = Bytes{static_cast<std::int64_t>(total)};
  return driver_.to_status(code, what);
}

// The granularity matters because residency is of chunks: each has to be mappable by itself.
Status CudaDevice::check_abilities() const {
  const std::string who = fmt::format("CUDA device {} ({})", ordinal_, name_);
  for (const int ability : {cuda::kHasVirtualMemory, cuda::kHasFileDescriptors}) {
    int is_there = 0;
    const cuda::Code code = calls().device_attribute(&is_there, ability, device_);
    if (code != cuda::kSuccess) return driver_.to_status(code, "ask what " + who + " can do");
    if (is_there != 0) continue;
    const char* const lacks =
        ability == cuda::kHasVirtualMemory ? "map memory" : "share memory as file descriptors";
    return {StatusCode::kFailedPrecondition, fmt::format("{} cannot {}", who, lacks)};
  }
  const cuda::AllocationProp prop = chunk_prop();
  std::size_t granularity = 0;
  const cuda::Code code = calls().granularity(&granularity, &prop, cuda::kMinimum);
  if (code != cuda::kSuccess) return driver_.to_status(code, "ask for the granularity of " + who);
  if (granularity != 0 && kChunkBytes.to_size() % granularity == 0) return {};
  return {StatusCode::kFailedPrecondition,
          fmt::format("{} maps memory by {} only, gpushare by {}", who,
                      to_string(Bytes{static_cast<std::int64_t>(granularity)}),
                      to_string(kChunkBytes))};
}

// Finds the NUMA node for host memory that the device can use in place, or leaves it at -1: there
// is none. An older driver does not know these attributes.
void CudaDevice::look_for_host_memory() {
  int is_there = 0;
  cuda::Code code = calls().device_attribute(&is_there, cuda::kHasHostNodeMemory, device_);
  if (code != cuda::kSuccess || is_there == 0) return;
  int nearest = -1;
  code = calls().device_attribute(&nearest, cuda::kNearestHostNode, device_);
  // -1: the machine has no NUMA nodes, so all its memory counts as node 0.
  host_node_ = code == cuda::kSuccess && nearest >= 0 ? nearest : 0;
  const cuda::AllocationProp prop = host_prop();
  std::size_t granularity = 0;
  code = calls().granularity(&granularity, &prop, cuda::kMinimum);
  const bool fits =
      code == cuda::kSuccess && granularity != 0 && kChunkBytes.to_size() % granularity == 0;
  if (!fits) host_node_ = -1;
}

cuda::AllocationProp CudaDevice::host_prop() const {
  cuda::AllocationProp prop{};
  prop.type = cuda::kPinned;
  prop.location = {cuda::kOnHostNode, host_node_};
  return prop;
}

cuda::AllocationProp CudaDevice::chunk_prop() const {
  cuda::AllocationProp prop{};
  prop.type = cuda::kPinned;
  prop.handle_types = cuda::kFileDescriptor;
  prop.location = {cuda::kOnDevice, ordinal_};
  return prop;
}

// Of the whole device, with all processes' memory, and not only of this one.
Result<CudaDevice::Memory> CudaDevice::memory_info() {
  const CudaScope scope(*this);
  if (!scope.status().ok()) return fail(scope.status());
  std::size_t free = 0;
  std::size_t total = 0;
  const cuda::Code code = calls().memory_info(&free, &total);
  if (code != cuda::kSuccess) return fail(driver_.to_status(code, "ask how much memory is free"));
  return Memory{Bytes{static_cast<std::int64_t>(free)}, Bytes{static_cast<std::int64_t>(total)}};
}

// All streams of the context, torch's included, since the context is the primary one.
Status CudaDevice::synchronize(const std::string& what) {
  return driver_.to_status(calls().context_synchronize(), what);
}

// The driver does not survive fork(), and its library may be gone once exit handlers run.
bool CudaDevice::is_usable() const { return owner_ == ::getpid() && !process_is_exiting(); }

// Once made the context is read without the lock. The lock keeps two threads from retaining it
// twice, since the destructor releases it once.
Result<cuda::Context> CudaDevice::context() {
  if (cuda::Context made = context_.load(std::memory_order_acquire)) return made;
  MutexLock lock(mu_);
  if (cuda::Context made = context_.load(std::memory_order_acquire)) return made;
  cuda::Context context = nullptr;
  const cuda::Code code = calls().context_retain(&context, device_);
  if (code != cuda::kSuccess) {
    return fail(
        driver_.to_status(code, fmt::format("retain the context of CUDA device {}", ordinal_)));
  }
  context_.store(context, std::memory_order_release);
  return context;
}

CudaScope::CudaScope(CudaDevice& device) : device_(device), status_(enter()) {}

// Notes each step that worked, so that the destructor undoes those and no others.
Status CudaScope::enter() {
  if (!device_.is_usable()) {
    return {StatusCode::kFailedPrecondition,
            "CUDA cannot be used in a forked child, nor once the process exits"};
  }
  const Result<cuda::Context> context = device_.context();
  if (!context) return context.error();
  const cuda::Calls& calls = device_.calls();
  cuda::Code code = calls.context_current(&before_);
  if (code == cuda::kSuccess && before_ != *context) {
    code = calls.context_set_current(*context);
    has_set_context_ = code == cuda::kSuccess;
  }
  if (code == cuda::kSuccess) {
    code = calls.exchange_capture_mode(&capture_mode_);
    has_set_mode_ = code == cuda::kSuccess;
  }
  return device_.driver().to_status(code, "make the device's context current");
}

CudaScope::~CudaScope() {
  const cuda::Calls& calls = device_.calls();
  cuda::Code code = cuda::kSuccess;
  if (has_set_mode_) code = calls.exchange_capture_mode(&capture_mode_);
  if (has_set_context_) {
    const cuda::Code restored = calls.context_set_current(before_);
    if (code == cuda::kSuccess) code = restored;
  }
  if (code == cuda::kSuccess) return;
  log::error("{}",
             device_.driver().to_status(code, "make the thread's context current again").message());
}

}  // namespace gpushare::vm
