// The interface through which the lease gate closes an allocator that is not ours: torch's own, on
// CUDA.
//
// Which problem it solves: our arenas can close for new segments, but torch also hands out blocks
// of the segments that it has. While the gate is closed none of them may be handed out, by any
// thread.
#pragma once

#include "csrc/alloc/allocator/memory_use.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"

namespace gpushare::client {

class Router {
 public:
  virtual ~Router() = default;

  // Waits until the device has done what it was given so far. threads: any; called without locks,
  // so that close() finds little to wait for.
  virtual void drain() = 0;
  // From its return on until open() every new block comes from memory that never moves, whichever
  // thread asks, and the device is idle. Returns what holds something then.
  // errors: kFailedPrecondition: not now (a stream captures); nothing has changed.
  // threads: one at a time, for open() too. Must not need the GIL, nor call the runtime.
  virtual Result<alloc::MemoryUse> close() = 0;
  virtual void open() = 0;
  // Bytes of blocks in use. Cheap. threads: any.
  virtual Bytes live() = 0;
};

}  // namespace gpushare::client
