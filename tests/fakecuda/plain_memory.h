// cudaMalloc's memory: an extent mapped whole, readable and writable, for as long as it lives; and
// that of other processes, opened by cudaIpcOpenMemHandle.
#pragma once

#include <cuda.h>

#include <map>
#include <optional>
#include <utility>

#include "tests/fakecuda/books.h"
#include "tests/fakecuda/range.h"

namespace fakecuda {

class PlainMemory {
 public:
  explicit PlainMemory(Books& books) : books_(books) {}

  CUresult allocate(CUdeviceptr* address, size_t bytes, int device);
  // errors: INVALID_VALUE unless it is the start of an allocation of this process.
  CUresult free(uintptr_t address);

  // errors: INVALID_VALUE unless the address lies in an allocation of this process.
  CUresult export_handle(CUipcMemHandle* handle, uintptr_t address);
  // errors: INVALID_CONTEXT for this process's own memory, as the driver; INVALID_HANDLE if it is
  // gone.
  CUresult open_handle(CUdeviceptr* address, const CUipcMemHandle& handle);
  CUresult close_handle(uintptr_t address);

  struct Allocation {
    Extent extent;
    bool is_imported = false;
  };
  // The allocation an address lies in, with its range. Null: in none.
  [[nodiscard]] std::pair<Range, const Allocation*> find(uintptr_t address) const;

 private:
  CUresult add(CUdeviceptr* address, const Extent& extent, bool is_imported);
  CUresult remove(uintptr_t address, bool is_imported);

  Books& books_;
  std::map<uintptr_t, Allocation> allocations_;
};

}  // namespace fakecuda
