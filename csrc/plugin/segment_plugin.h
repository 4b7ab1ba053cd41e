// The segment plugin: supplies the segments of torch's own CUDA caching allocator.
//
// torch keeps its allocator (blocks, streams, graph pools, statistics). It meets us only where it
// asks the runtime for a segment, and where it gives one back. The import slots of its cudaMalloc,
// cudaFree, cudaMemGetInfo and cudaDeviceEnablePeerAccess hold the functions below
// (import_slots.h). Segments come from a SegmentStore, whose memory can leave the device and come
// back to the same addresses.
//
// Memory that is not ours goes to the real function: that of other devices, memory taken before the
// plugin was installed, what a PassthroughScope asks for, and all of a forked child. Nothing here
// needs the GIL or calls torch, since the caller may hold the lock of torch's allocator.
//
// The functions have no argument of ours, so there is one plugin in a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "csrc/alloc/allocator/segment_store.h"
#include "csrc/base/status.h"
#include "csrc/plugin/real_runtime.h"

namespace gpushare::plugin {

// The libraries whose slots are replaced, named by the end of their file names. `runtime` is the
// beginning of the runtime's file name.
struct PluginLibraries {
  // Has torch's allocator: all functions are replaced there.
  std::string allocator = "libc10_cuda.so";
  // Show figures to the user: cudaMemGetInfo, where they are loaded and import it.
  std::vector<std::string> figures = {"libtorch_cuda.so", "libtorch_python.so"};
  std::string runtime = "libcudart.so";
};

struct PluginOptions {
  // Not owned: outlives the last call of the functions below.
  alloc::SegmentStore* store = nullptr;
  // The runtime's ordinal of the device whose memory the store hands out.
  int device = 0;
  // Every segment is the runtime's own, as if there were no plugin; for looking for a fault.
  bool passthrough_all = false;
  PluginLibraries libraries = {};
};

// From now on torch's segments come from the store. Those it has stay what they are.
// errors: kInvalidArgument; kFailedPrecondition if it is installed already, the runtime is not
// loaded, or a library's slots are not as expected (import_slots.h); kIo if a slot cannot be
// written. Torch's segments are then the runtime's own, as before, and it may be installed again.
Status install_segment_plugin(const PluginOptions& options);
// For tests. pre: no other thread uses the runtime, and all segments were given back.
// errors: as ImportSlots::restore; the plugin then stays installed.
Status uninstall_segment_plugin();
// Whether torch still calls us. false too if the plugin is not installed.
[[nodiscard]] bool segment_plugin_is_intact();

// Why the calling thread was refused the segment that it asked for last. Empty if it got that one,
// or if the text was taken already. For the line in the log when torch raises out of memory, which
// it may do for reasons of its own.
[[nodiscard]] std::string take_refusal();

struct PluginCounts {
  std::int64_t taken = 0;            // segments handed out
  std::int64_t given_back = 0;       // and back again
  std::int64_t forwarded_frees = 0;  // of memory that is not ours
  std::int64_t refused = 0;
};
// Since the installation; zeros if the plugin is not installed.
[[nodiscard]] PluginCounts plugin_counts();

// Sets whether the calling thread's segments are the runtime's own from now on. Memory that another
// process or device is to use must be. Returns what was set before.
bool set_passthrough(bool is_on);
[[nodiscard]] bool is_passthrough();

// The calling thread's segments are the runtime's own while this object lives.
class PassthroughScope {
 public:
  PassthroughScope() : before_(set_passthrough(true)) {}
  ~PassthroughScope() { set_passthrough(before_); }
  PassthroughScope(const PassthroughScope&) = delete;
  PassthroughScope& operator=(const PassthroughScope&) = delete;

 private:
  const bool before_;
};

// The functions in the slots. pre: the plugin is installed. threads: any.
extern "C" {
// As cudaMalloc(). If the store refuses the segment, returns kCudaOutOfMemory, or kCudaUnknown
// where the device failed. The reason is take_refusal().
CudaError gs_cuda_malloc(void** out, std::size_t size) noexcept;
// As cudaFree(): the device has done all its work when it returns.
CudaError gs_cuda_free(void* address) noexcept;
// As cudaMemGetInfo(), for the part of the device that this job may use.
CudaError gs_cuda_mem_get_info(std::size_t* free, std::size_t* total) noexcept;
// As cudaDeviceEnablePeerAccess(), which is refused for the device whose memory moves: kernels of
// another device that use that memory could not be waited for.
CudaError gs_cuda_enable_peer_access(int peer, unsigned flags) noexcept;
}

}  // namespace gpushare::plugin
