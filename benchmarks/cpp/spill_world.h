// A parked job's memory as the spill benchmarks move it: an allocator over host memory, full of
// live blocks, with a host tier that one spill has touched before anything is timed.
//
// A spill counts only if the kernel's figure for the job's range fell by what was spilled, and at
// the end every page must hold what was written into it: a check that fails ends the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/base/units.h"
#include "csrc/vm/host/host_vmm.h"
#include "csrc/vm/mover.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::benchmarks {

class SpillWorld {
 public:
  // `folder` empty: the host tier is RAM. pre: size is a multiple of 64 MiB.
  SpillWorld(Bytes size, const std::string& folder);

  // Seconds that moving all live memory took.
  double spill();
  double restore();
  // Of the processor, by all threads of this process, for the last of them.
  [[nodiscard]] double cpu_seconds() const { return cpu_seconds_; }
  // Aborts unless each page has the bytes it was given. pre: restored.
  void check_contents() const;

 private:
  // By the kernel's figure for the allocator's range.
  [[nodiscard]] Bytes resident() const;

  const Bytes size_;
  vm::HostVmm vmm_;
  std::unique_ptr<vm::HostSlab> slab_;
  vm::Mover mover_;
  std::unique_ptr<alloc::CachingAllocator> allocator_;
  alloc::Residency residency_;
  std::vector<std::uint64_t*> blocks_;
  double cpu_seconds_ = 0;
};

// Seconds since `begun`.
double seconds_since(Nanos begun);

}  // namespace gpushare::benchmarks
