// Where bytes of the host tier lie, so that a device's addresses can show them: in a file that can
// be mapped, or in memory of the CUDA driver's, which has no file.
#pragma once

#include <cstdint>

namespace gpushare::vm {

class CudaHostMemory;

struct HostPlace {
  int fd = -1;  // borrowed from the slab
  std::int64_t offset = 0;
  const CudaHostMemory* memory = nullptr;  // instead of a file; likewise
  bool operator==(const HostPlace&) const = default;
};

}  // namespace gpushare::vm
