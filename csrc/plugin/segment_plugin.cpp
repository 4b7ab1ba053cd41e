// What happens in the place of cudaMalloc, cudaFree, cudaMemGetInfo and cudaDeviceEnablePeerAccess.
//
// A segment is asked for in this order. It is the runtime's own if the plugin is bypassed, the
// thread passes through, or the process exits; then if another device is current. Otherwise the
// device's context is made sure of, and the store supplies the segment. A refusal is out of memory
// to torch, which gives back its cache and asks again. The reason is kept for the thread, for the
// log line that torch's out-of-memory observer writes.
//
// A segment is freed in this order. While the process exits nothing is done. What the store does
// not own goes to the real function. Otherwise the device is waited for, as cudaFree() promises,
// and only then does the store get the segment back.
//
// Torch's allocator lock may be held by whoever calls. So nothing here calls torch or takes the
// GIL.
#include "csrc/plugin/segment_plugin.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/base/process/process_exit.h"
#include "csrc/base/process/start_thread.h"
#include "csrc/plugin/import_slots.h"
#include "csrc/plugin/plugin_object.h"

namespace gpushare::plugin {
namespace {

// Whether this process is a forked child: CUDA cannot be used there. relaxed: the child's only
// thread sets it.
std::atomic<bool> g_is_forked{false};

// pthread_atfork() handlers cannot be removed, so they are installed once for all installations.
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
// Why this thread was refused its last segment. Empty once it has got one, or the text was taken.
thread_local std::string t_refusal;
// The number of installations so far, and the installation for which this thread has made sure of
// the device's context.
std::atomic<std::uint64_t> g_num_installed{0};
thread_local std::uint64_t t_has_context_of = 0;

}  // namespace

SegmentPlugin::SegmentPlugin(const PluginOptions& options, const RealRuntime& real)
    : options_(options), real_(real), number_(++g_num_installed) {
  watch_process_exit();
  watch_fork();
}

bool SegmentPlugin::is_bypassed() const {
  return options_.passthrough_all || is_forked() || state() != State::kServing;
}

// Torch's allocator must have the slots for segments and figures; that for peer access may be
// missing. The libraries that only show figures to the user may be absent as a whole.
Status SegmentPlugin::find_slots() {
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
  Result<ImportSlots> found = ImportSlots::find(requests);
  if (!found) return std::move(found.error());
  slots_ = std::move(*found);
  return {};
}

Status SegmentPlugin::write_slots() {
  Status written = slots_.write();
  state_.store(written.ok() ? State::kServing : State::kFailed, std::memory_order_release);
  return written;
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

// Says once for each device that its memory is not shared. Devices 64 apart share a bit, so the
// second of them may be left out.
void SegmentPlugin::say_not_shared(int device) {
  const std::uint64_t bit = std::uint64_t{1} << (static_cast<unsigned>(device) % 64);
  if ((said_devices_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  log::info("device {} is not shared: its memory is torch's own", device);
}

// The runtime makes a device's context at the first call that needs one. That is usually the
// cudaMalloc() that we replace, so another call has to do it: freeing nothing. The runtime sets the
// context for each thread, so each thread makes this call once.
CudaError SegmentPlugin::make_context() {
  if (t_has_context_of == number_) return kCudaSuccess;
  const CudaError error = real_.free(nullptr);
  if (error == kCudaSuccess) t_has_context_of = number_;
  return error;
}

// Asks the store, which may wait for room (segment_store.cpp). A size beyond kMost cannot be
// rounded up without overflow, and is out of memory at once.
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

// A refusal for lack of memory is logged at debug only. Torch frees its own cache and asks again,
// and raises an error of its own if that is refused too. A failure of the device is logged as an
// error, since torch shows no more than its code.
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
  // As in cudaFree(), an error of the device's earlier work comes out here. The segment then stays
  // torch's.
  if (const CudaError error = synchronize(); error != kCudaSuccess) return error;
  if (!options_.store->give_back(address)) return kCudaInvalidValue;
  given_back_.fetch_add(1, std::memory_order_relaxed);
  return kCudaSuccess;
}

// Waits for all work of the shared device. Kernels that use the segment may be under way, and the
// next owner of its bytes must not meet them.
CudaError SegmentPlugin::synchronize() {
  int device = 0;
  if (const CudaError error = real_.get_device(&device); error != kCudaSuccess) return error;
  if (device == options_.device) return real_.synchronize();
  // Another device is current on this thread. The wait runs on a thread of its own: switching the
  // current device here and back would make a context on the other device, if it has none.
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

// The real figures come first, so that errors are the runtime's. For the shared device both are
// then lowered to the part that this job may use.
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

// Refuses access to memory of the shared device. A kernel of another device that uses such memory
// could not be waited for before the memory moves.
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

std::string take_refusal() { return std::exchange(t_refusal, {}); }

bool set_passthrough(bool is_on) { return std::exchange(t_is_passed_through, is_on); }

bool is_passthrough() { return t_is_passed_through; }

}  // namespace gpushare::plugin
