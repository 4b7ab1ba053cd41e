// Pinned host memory: allocated by the driver, or the caller's own, registered.
#pragma once

#include <cuda.h>

#include <map>
#include <optional>

#include "tests/fakecuda/range.h"

namespace fakecuda {

class HostMemory {
 public:
  CUresult allocate(void** address, size_t bytes);
  // errors: INVALID_VALUE unless it is the start of what allocate() gave.
  CUresult free(void* address);
  // errors: HOST_MEMORY_ALREADY_REGISTERED if a part of it is pinned already.
  CUresult add(void* address, size_t bytes);
  // errors: HOST_MEMORY_NOT_REGISTERED unless it is the start of what add() got.
  CUresult remove(void* address);

  // The pinned range an address lies in.
  [[nodiscard]] std::optional<Range> find(uintptr_t address) const;
  // Whether all of it is pinned, in one range or in several side by side.
  [[nodiscard]] bool covers(Range range) const;

 private:
  struct Pinned {
    size_t bytes = 0;
    bool is_allocated = false;
  };
  std::map<uintptr_t, Pinned> ranges_;
};

}  // namespace fakecuda
