// Routes torch's allocations between its own pools, and closes its allocator with the lease gate.
//
// A close goes in this order. New blocks of every thread are routed to the outside pool; the device
// is waited for; the snapshot is read. So nothing can change hands while it is read. A failure in
// any step ends the routing again and refuses the close; the caller tries again later. While a
// stream is captured nothing is tried, since waiting for the device would break the capture.
//
// mu_ is held during the wait for the device. So no capture can begin under it: note_capture()
// waits for the same lock.
#include "csrc/binding/torch/torch_router.h"

#include <cstdint>
#include <string>
#include <utility>

#include <c10/cuda/CUDACachingAllocator.h>

#include "csrc/base/log.h"
#include "csrc/binding/torch/torch_memory.h"
#include "csrc/plugin/segment_plugin.h"

namespace gpushare::binding {
namespace {

namespace native = c10::cuda::CUDACachingAllocator;

// Torch numbers its own pools upwards from 1, in either half of the id. These two are far above.
constexpr std::uint64_t kOutsidePool = 0x6770757368617265;
constexpr std::uint64_t kSharedPool = kOutsidePool + 1;

c10::MempoolId_t mempool_of(std::uint64_t pool) { return {pool, 0}; }

// Torch reports what goes wrong by throwing; below binding/ nothing does.
template <typename Body>
Status without_throwing(const char* what, Body body) {
  try {
    body();
    return {};
  } catch (const c10::Error& error) {
    return {StatusCode::kFailedPrecondition,
            std::string(what) + ": " + error.what_without_backtrace()};
  }
}

}  // namespace

Status say_why_out_of_memory(std::string (*take_reason)()) {
  // The arguments are already in torch's own text. Torch calls the observer without its lock.
  const auto observer = [take_reason](std::int64_t, std::size_t, std::size_t, std::size_t) {
    const std::string reason = take_reason();
    if (!reason.empty()) log::error("out of memory: {}", reason);
  };
  return without_throwing("watch torch's CUDA allocator",
                          [&] { native::get()->attachOutOfMemoryObserver(observer); });
}

// The first time, the pool gets a count of our own. That keeps it when the routing ends, so that
// its blocks serve the next time too.
void PoolRoute::begin() {
  if (is_on_) return;
  if (!has_pool_) native::get()->createOrIncrefPool(index_, mempool_of(pool_));
  has_pool_ = true;
  native::get()->beginAllocateToPool(index_, mempool_of(pool_),
                                     [takes = takes_](cudaStream_t) { return takes(); });
  is_on_ = true;
}

void PoolRoute::end() {
  if (!std::exchange(is_on_, false)) return;
  native::get()->endAllocateToPool(index_, mempool_of(pool_));
  native::get()->releasePool(index_, mempool_of(pool_));
}

TorchRouter::TorchRouter(vm::CudaDevice& device, alloc::SegmentStore& store)
    : device_(device),
      store_(store),
      index_(static_cast<c10::DeviceIndex>(device.ordinal())),
      outside_(index_, kOutsidePool, [] { return !plugin::is_passthrough(); }),
      shared_(index_, kSharedPool, [] { return plugin::is_passthrough(); }) {}

void TorchRouter::drain() {
  // Throughout, so that no capture begins under the wait, which would break it.
  MutexLock lock(mu_);
  if (num_captures_ > 0) return;
  const vm::CudaScope scope(device_);
  Status status = scope.status();
  if (status.ok()) status = device_.synchronize("before the lease closes");
  // close() waits again, and says what is wrong.
  if (!status.ok()) log::debug("{}", status.message());
}

Result<alloc::MemoryUse> TorchRouter::close() {
  MutexLock lock(mu_);
  if (num_captures_ > 0) {
    return fail(StatusCode::kFailedPrecondition,
                "the lease cannot be given back while a CUDA stream is captured: begin the "
                "iteration (with job.iteration()) before the capture");
  }
  const vm::CudaScope scope(device_);
  if (!scope.status().ok()) return fail(scope.status());
  alloc::MemoryUse use;
  // The lambdas run here, under the lock: more than the analysis follows.
  Status status = without_throwing("close torch's CUDA allocator",
                                   [&]() GS_NO_THREAD_SAFETY_ANALYSIS { begin_outside(); });
  if (status.ok()) status = device_.synchronize("close the lease");
  if (status.ok()) {
    status = without_throwing("read torch's CUDA memory",
                              [&]() GS_NO_THREAD_SAFETY_ANALYSIS { use = read_use(); });
  }
  if (status.ok()) return use;
  if (const Status undone = end_outside(); !undone.ok()) log::error("{}", undone.message());
  say_how_often();
  return fail(std::move(status));
}

// A failure is only logged: the lease opens in any case.
void TorchRouter::open() {
  MutexLock lock(mu_);
  if (const Status status = end_outside(); !status.ok()) log::error("{}", status.message());
  say_how_often();
}

// Active bytes by torch's own count, over all its pools of this device.
Bytes TorchRouter::live() {
  Bytes live;
  const auto read = [&] {
    const auto stats = native::get()->getDeviceStats(index_);
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    live = Bytes{stats.active_bytes[kAll].current};
  };
  if (!native::get()->initialized()) return live;
  static_cast<void>(without_throwing("read torch's CUDA figures", read));
  return live;
}

// The count rises before torch begins the capture, so close() is refused from then on. The lock is
// free again when the capture runs.
void TorchRouter::note_capture(bool is_beginning) {
  MutexLock lock(mu_);
  num_captures_ += is_beginning ? 1 : -1;
  say_how_often();
}

// While the gate is closed the shared pool is in use already (begin_outside), so there only the
// count rises.
Status TorchRouter::begin_sharing() {
  MutexLock lock(mu_);
  ++num_sharing_;
  say_how_often();
  if (num_sharing_ > 1 || is_outside_) return {};
  Status status = without_throwing("share CUDA memory",
                                   [&]() GS_NO_THREAD_SAFETY_ANALYSIS { shared_.begin(); });
  if (!status.ok()) --num_sharing_;
  say_how_often();
  return status;
}

// While the gate is closed the route stays: it belongs to the closed gate then, and ends when that
// opens.
void TorchRouter::end_sharing() {
  MutexLock lock(mu_);
  --num_sharing_;
  if (num_sharing_ == 0 && !is_outside_) {
    const Status status = without_throwing("end the sharing of CUDA memory",
                                           [&]() GS_NO_THREAD_SAFETY_ANALYSIS { shared_.end(); });
    if (!status.ok()) log::error("{}", status.message());
  }
  say_how_often();
}

// Tells the store whether torch asks a second time for a segment that it was refused. Torch gives
// back what it keeps and asks again only while it routes nothing to a pool.
void TorchRouter::say_how_often() {
  store_.set_asks_once(num_captures_ > 0 || num_sharing_ > 0 || is_outside_);
}

// Two filters are set: threads that pass through go to the shared pool, all others to the outside
// pool. Never do both say yes, so it does not matter in which order torch asks them.
void TorchRouter::begin_outside() {
  is_outside_ = true;
  say_how_often();
  outside_.begin();
  shared_.begin();
}

// Both routes end, even if torch refuses to end the first. The shared one goes on where a thread is
// sharing memory.
Status TorchRouter::end_outside() {
  if (!std::exchange(is_outside_, false)) return {};
  constexpr const char* kWhat = "open torch's CUDA allocator";
  Status status = without_throwing(kWhat, [&]() GS_NO_THREAD_SAFETY_ANALYSIS { outside_.end(); });
  if (num_sharing_ > 0) return status;
  Status shared = without_throwing(kWhat, [&]() GS_NO_THREAD_SAFETY_ANALYSIS { shared_.end(); });
  return status.ok() ? shared : status;
}

alloc::MemoryUse TorchRouter::read_use() {
  TorchMemory memory = read_torch_memory(index_);
  if (memory.is_expandable) say_expandable();
  return std::move(memory.use);
}

// Memory of expandable segments lies outside our range, so nothing of it is ever moved. Said once.
void TorchRouter::say_expandable() {
  if (std::exchange(has_said_expandable_, true)) return;
  log::error(
      "torch's allocator has expandable segments, from before gpushare came in or switched on "
      "since: "
      "torch maps such memory past cudaMalloc, so the coordinator knows nothing of it and other "
      "jobs may run out of memory. "
      "Leave it out of what sets up torch's allocator");
}

}  // namespace gpushare::binding
