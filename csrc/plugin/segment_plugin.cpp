#include "csrc/plugin/segment_plugin.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/base/process_exit.h"
#include "csrc/base/start_thread.h"
#include "csrc/plugin/import_slots.h"

namespace gpushare::plugin {
namespace {

// relaxed: set by the child's only thread.
std::atomic<bool> g_is_forked{false};

void watch_fork() {
  static const bool is_watched = [] {
    const int rc = ::pthread_atfork(nullptr, nullptr,
                                    [] { g_is_forked.store(true, std::memory_order_relaxed); });
    GS_CHECK(rc == 0, "pthread_atfork returned {}", rc);
    return true;
  }();
  static_cast<void>(is_watched);
}

bool is_forked() { return g_is_forked.load(std::memory_order_relaxed); }

thread_local bool t_is_passed_through = false;
// Empty once the thread has got a segment, or the text was taken.
thread_local std::string t_refusal;
// Installations so far, and the one for which the thread has made sure of the device's context.
std::atomic<std::uint64_t> g_num_installed{0};
thread_local std::uint64_t t_has_context_of = 0;

class SegmentPlugin {
 public:
  SegmentPlugin(const PluginOptions& options, const RealRuntime& real)
      : options_(options), real_(real), number_(++g_num_installed) {}

  Status replace_slots();
  Status restore_slots() { return slots_.restore(); }
  [[nodiscard]] bool is_intact() const { return slots_.are_intact(); }

  CudaError allocate(void** out, std::size_t size);
  CudaError free(void* address);
  CudaError mem_get_info(std::size_t* free, std::size_t* total);
  CudaError enable_peer_access(int peer, unsigned flags);

  [[nodiscard]] PluginCounts counts() const;

 private:
  [[nodiscard]] bool is_bypassed() const { return options_.passthrough_all || is_forked(); }
  void say_not_shared(int device);
  CudaError make_context();
  CudaError take(void** out, std::size_t size);
  void note_refusal(const Status& reason);
  CudaError synchronize();

  const PluginOptions options_;
  const RealRuntime real_;
  const std::uint64_t number_;
  ImportSlots slots_;

  // relaxed, all of them: counts, and a line more or less in the log.
  std::atomic<std::int64_t> taken_{0};
  std::atomic<std::int64_t> given_back_{0};
  std::atomic<std::int64_t> forwarded_frees_{0};
  std::atomic<std::int64_t> refused_{0};
  std::atomic<std::uint64_t> said_devices_{0};  // one bit a device
};

Status SegmentPlugin::replace_slots() {
  const PluginLibraries& names = options_.libraries;
  void* const mem_get_info = reinterpret_cast<void*>(&gs_cuda_mem_get_info);
  std::vector<SlotRequest> requests{
      {names.allocator, "cudaMalloc", reinterpret_cast<void*>(&gs_cuda_malloc)},
      {names.allocator, "cudaFree", reinterpret_cast<void*>(&gs_cuda_free)},
      {names.allocator, "cudaMemGetInfo", mem_get_info},
      {names.allocator, "cudaDeviceEnablePeerAccess",
       reinterpret_cast<void*>(&gs_cuda_enable_peer_access), true},
  };
  for (const std::string& library : names.figures)
    requests.push_back({library, "cudaMemGetInfo", mem_get_info, true});
  Result<ImportSlots> replaced = ImportSlots::replace(requests);
  if (!replaced) return std::move(replaced.error());
  slots_ = std::move(*replaced);
  return {};
}

CudaError SegmentPlugin::allocate(void** out, std::size_t size) {
  const bool is_forwarded = is_bypassed() || t_is_passed_through || process_is_exiting();
  if (is_forwarded || out == nullptr || size == 0) return real_.malloc(out, size);
  int device = 0;
  if (const CudaError error = real_.get_device(&device); error != kCudaSuccess) return error;
  if (device != options_.device) {
    say_not_shared(device);
    return real_.malloc(out, size);
  }
  if (const CudaError error = make_context(); error != kCudaSuccess) return error;
  return take(out, size);
}

void SegmentPlugin::say_not_shared(int device) {
  const std::uint64_t bit = std::uint64_t{1} << (static_cast<unsigned>(device) % 64);
  if ((said_devices_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  log::info("device {} is not shared: its memory is torch's own", device);
}

// The runtime makes a device's context at the first call that needs one, which is as a rule the
// cudaMalloc() that we replace. Freeing nothing is such a call. The context is set for each thread.
CudaError SegmentPlugin::make_context() {
  if (t_has_context_of == number_) return kCudaSuccess;
  const CudaError error = real_.free(nullptr);
  if (error == kCudaSuccess) t_has_context_of = number_;
  return error;
}

CudaError SegmentPlugin::take(void** out, std::size_t size) {
  constexpr std::size_t kMost = std::size_t{INT64_MAX} / 2;  // the store rounds up
  Result<void*> segment =
      size <= kMost ? options_.store->take(Bytes{static_cast<std::int64_t>(size)})
                    : fail(StatusCode::kOutOfMemory, fmt::format("a segment of {} bytes", size));
  if (!segment) {
    note_refusal(segment.error());
    return segment.error().code() == StatusCode::kIo ? kCudaUnknown : kCudaOutOfMemory;
  }
  taken_.fetch_add(1, std::memory_order_relaxed);
  t_refusal.clear();
  *out = *segment;
  return kCudaSuccess;
}

// Out of memory is not more than debug: torch frees its own cache and asks again, and raises an
// error of its own if that is refused too. Of another failure torch says no more than its code.
void SegmentPlugin::note_refusal(const Status& reason) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (reason.code() == StatusCode::kIo) {
    log::error("a segment was refused: {}", reason.message());
  } else {
    log::debug("a segment was refused: {}", reason.message());
  }
  t_refusal = reason.message();
}

CudaError SegmentPlugin::free(void* address) {
  if (process_is_exiting()) return kCudaSuccess;  // the driver may be gone, and takes all anyway
  if (is_bypassed() || address == nullptr || !options_.store->owns(address)) {
    forwarded_frees_.fetch_add(1, std::memory_order_relaxed);
    return real_.free(address);
  }
  // An error of the device's earlier work comes out here, as in cudaFree(): the segment stays
  // torch's.
  if (const CudaError error = synchronize(); error != kCudaSuccess) return error;
  if (!options_.store->give_back(address)) return kCudaInvalidValue;
  given_back_.fetch_add(1, std::memory_order_relaxed);
  return kCudaSuccess;
}

// Kernels that use the segment may be under way; the next owner of its bytes must not meet them.
CudaError SegmentPlugin::synchronize() {
  int device = 0;
  if (const CudaError error = real_.get_device(&device); error != kCudaSuccess) return error;
  if (device == options_.device) return real_.synchronize();
  // On a thread of its own: to come back here to another device would make a context there, if it
  // has none.
  CudaError result = kCudaSuccess;
  Result<std::thread> thread = start_thread("waiting for the device", [this, &result] {
    result = real_.set_device(options_.device);
    if (result == kCudaSuccess) result = real_.synchronize();
  });
  if (!thread.has_value()) {
    log::warn("a segment of device {} stays taken: {}", options_.device, thread.error().message());
    return kCudaOutOfMemory;
  }
  thread->join();
  return result;
}

CudaError SegmentPlugin::mem_get_info(std::size_t* free, std::size_t* total) {
  if (const CudaError error = real_.mem_get_info(free, total); error != kCudaSuccess) return error;
  if (is_bypassed() || free == nullptr || total == nullptr) return kCudaSuccess;
  int device = 0;
  if (const CudaError error = real_.get_device(&device); error != kCudaSuccess) return error;
  if (device != options_.device) return kCudaSuccess;
  if (const auto share = options_.store->share(); share) {
    *total = std::min(*total, share->total.to_size());
    *free = std::min(*free, share->free.to_size());
  }
  return kCudaSuccess;
}

CudaError SegmentPlugin::enable_peer_access(int peer, unsigned flags) {
  if (is_bypassed() || peer != options_.device) return real_.enable_peer_access(peer, flags);
  int device = 0;
  if (const CudaError error = real_.get_device(&device); error != kCudaSuccess) return error;
  log::error(
      "device {} is refused access to memory of device {}, which is shared and moves. "
      "GPUSHARE_PASSTHROUGH=on leaves this job's memory where it is",
      device, peer);
  return kCudaPeerAccessUnsupported;
}

PluginCounts SegmentPlugin::counts() const {
  return {.taken = taken_.load(std::memory_order_relaxed),
          .given_back = given_back_.load(std::memory_order_relaxed),
          .forwarded_frees = forwarded_frees_.load(std::memory_order_relaxed),
          .refused = refused_.load(std::memory_order_relaxed)};
}

// The functions in the slots find their state here. Set before the first slot is replaced, and not
// owned: torch frees while static objects are destroyed. release; pairs with plugin()'s acquire.
std::atomic<SegmentPlugin*> g_plugin{nullptr};

SegmentPlugin* plugin() { return g_plugin.load(std::memory_order_acquire); }

}  // namespace

Status install_segment_plugin(const PluginOptions& options) {
  if (options.store == nullptr && !options.passthrough_all) {
    return {StatusCode::kInvalidArgument, "a segment plugin without a store"};
  }
  if (options.device < 0) {
    return {StatusCode::kInvalidArgument, fmt::format("device {}", options.device)};
  }
  Result<RealRuntime> real = RealRuntime::find(options.libraries.runtime);
  if (!real) return std::move(real.error());
  watch_process_exit();
  watch_fork();
  auto made = std::make_unique<SegmentPlugin>(options, *real);
  SegmentPlugin* none = nullptr;
  if (!g_plugin.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
    return {StatusCode::kFailedPrecondition, "the segment plugin is installed already"};
  }
  if (Status replaced = made->replace_slots(); !replaced.ok()) {
    g_plugin.store(nullptr, std::memory_order_release);
    return replaced;
  }
  g_plugin.store(made.release(), std::memory_order_release);  // which owns it from now on
  return {};
}

Status uninstall_segment_plugin() {
  if (plugin() == nullptr) {
    return {StatusCode::kFailedPrecondition, "the segment plugin is not installed"};
  }
  GS_RETURN_IF_ERROR(plugin()->restore_slots());
  const std::unique_ptr<SegmentPlugin> gone(g_plugin.exchange(nullptr, std::memory_order_acq_rel));
  return {};
}

bool segment_plugin_is_intact() { return plugin() != nullptr && plugin()->is_intact(); }

std::string take_refusal() { return std::exchange(t_refusal, {}); }

PluginCounts plugin_counts() { return plugin() == nullptr ? PluginCounts() : plugin()->counts(); }

bool set_passthrough(bool is_on) { return std::exchange(t_is_passed_through, is_on); }

bool is_passthrough() { return t_is_passed_through; }

CudaError gs_cuda_malloc(void** out, std::size_t size) noexcept {
  return plugin()->allocate(out, size);
}

CudaError gs_cuda_free(void* address) noexcept { return plugin()->free(address); }

CudaError gs_cuda_mem_get_info(std::size_t* free, std::size_t* total) noexcept {
  return plugin()->mem_get_info(free, total);
}

CudaError gs_cuda_enable_peer_access(int peer, unsigned flags) noexcept {
  return plugin()->enable_peer_access(peer, flags);
}

}  // namespace gpushare::plugin
