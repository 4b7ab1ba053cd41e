// The RAM that a slab's slots lie in: chunks numbered from 0, added one by one and kept.
//
// Two kinds: a memfd (memfd_memory.h), and memory of the CUDA driver's, which a device can use too
// (cuda_host_memory.h).
//
// threads: add() by one at a time; the others any, also meanwhile, of chunks that are there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/vm/contract/host_place.h"

namespace gpushare::vm {

class HostMemory {
 public:
  // Address space comes in extents of so many chunks, 64 MiB.
  static constexpr std::uint32_t kExtentChunks = 32;

  virtual ~HostMemory() = default;

  // The chunk with the number `next`, populated now. `most` is how many there may be in all, so
  // that some can be prepared at a time. pre: those before it are there. errors: kOutOfMemory,
  // kIo; it may be tried again.
  virtual Status add(std::uint32_t next, std::int64_t most) = 0;
  [[nodiscard]] virtual std::byte* address_of(std::uint32_t chunk) const = 0;
  // One after the last chunk that one copy may take together with this one.
  [[nodiscard]] virtual std::uint32_t end_of_copy(std::uint32_t chunk) const = 0;
  // Chunks with neighbouring numbers lie side by side.
  [[nodiscard]] virtual HostPlace place_of(std::uint32_t chunk) const = 0;
};

}  // namespace gpushare::vm
