// Opens and closes torch's own CUDA caching allocator with the lease gate.
//
// While the gate is closed every thread's new blocks come from a private pool of torch's, the
// outside pool, whose segments never move: what user code makes in the gap. What torch has in its
// other segments is read from its snapshot, which costs some ten microseconds.
//
// Which segments may move: those of torch's default pools. Those of other pools (graphs', users')
// stay where they are, and so does a segment that the snapshot does not know.
//
// A thread that makes memory for another process (CUDA IPC) is routed to a third pool, whose
// segments are the runtime's own, whether the gate is closed or not.
//
// With torch_memory the one place that calls virtual functions of torch's CUDA allocator; their
// table differs between minor versions, for each of which this module is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <c10/core/Device.h>

#include "csrc/alloc/allocator/segment_store.h"
#include "csrc/base/mutex.h"
#include "csrc/client/memory/router.h"
#include "csrc/vm/cuda/cuda_device.h"

namespace gpushare::binding {

// One line in the log whenever torch raises out of memory on a thread for which `take_reason` has
// one: torch's own text knows of nobody else's memory. For the rest of the process. pre: torch has
// initialised CUDA. errors: kFailedPrecondition.
Status say_why_out_of_memory(std::string (*take_reason)());

// A pool in torch's allocator, and the filter that sends new blocks of some threads to it while the
// route is on. Torch refuses by throwing; the route is off then.
class PoolRoute {
 public:
  // `pool`: its number (torch_router.cpp). `takes` says whether the calling thread's new blocks go
  // there; torch asks it with its lock held.
  PoolRoute(c10::DeviceIndex index, std::uint64_t pool, bool (*takes)())
      : index_(index), pool_(pool), takes_(takes) {}

  // Does nothing while it is on.
  void begin();
  // Does nothing while it is off.
  void end();

 private:
  const c10::DeviceIndex index_;
  const std::uint64_t pool_;
  bool (*const takes_)();
  bool has_pool_ = false;  // the pool has a count of ours
  bool is_on_ = false;
};

class TorchRouter final : public client::Router {
 public:
  // Both must outlive it. The store hears how often torch asks.
  TorchRouter(vm::CudaDevice& device, alloc::SegmentStore& store);

  void drain() override;
  Result<alloc::MemoryUse> close() override;
  void open() override;
  Bytes live() override;

  // A stream capture begins or has ended. Waits for a close that is under way.
  void note_capture(bool is_beginning);

  // Between the two the calling thread's blocks come from segments that the plugin passes through.
  // errors: kFailedPrecondition: torch refuses; nothing has changed.
  Status begin_sharing();
  void end_sharing();

 private:
  void begin_outside() GS_REQUIRES(mu_);
  Status end_outside() GS_REQUIRES(mu_);
  void say_how_often() GS_REQUIRES(mu_);
  [[nodiscard]] alloc::MemoryUse read_use() GS_REQUIRES(mu_);
  void say_expandable() GS_REQUIRES(mu_);

  vm::CudaDevice& device_;
  alloc::SegmentStore& store_;
  const c10::DeviceIndex index_;
  Mutex mu_;
  int num_captures_ GS_GUARDED_BY(mu_) = 0;
  int num_sharing_ GS_GUARDED_BY(mu_) = 0;
  bool is_outside_ GS_GUARDED_BY(mu_) = false;
  PoolRoute outside_ GS_GUARDED_BY(mu_);
  PoolRoute shared_ GS_GUARDED_BY(mu_);
  bool has_said_expandable_ GS_GUARDED_BY(mu_) = false;
};

}  // namespace gpushare::binding
