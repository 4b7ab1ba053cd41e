// Physical memory as this process has it: cuMemCreate's handles and what is mapped of them.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>

#include "tests/fakecuda/books.h"

namespace fakecuda {

// One allocation. Alive while it has a handle or a mapping.
struct Physical {
  Extent extent;
  CUmemLocation location = {};
  bool is_exportable = false;  // a POSIX descriptor was among the requested handle types

  int num_handles = 1;
  int num_mappings = 0;

  [[nodiscard]] uint64_t bytes() const { return extent.bytes; }
  [[nodiscard]] bool is_on_host() const { return extent.device == kHostPlace; }
};

// All methods: CUDA_ERROR_INVALID_VALUE for a handle that is none.
class PhysicalMemory {
 public:
  PhysicalMemory(Books& books, bool has_host_memory)
      : books_(books), has_host_memory_(has_host_memory) {}

  CUresult create(CUmemGenericAllocationHandle* handle,
                  size_t bytes,
                  const CUmemAllocationProp& wanted);
  CUresult release(CUmemGenericAllocationHandle handle);
  // Another use of the handle, to be released on its own.
  CUresult retain(CUmemGenericAllocationHandle handle);
  // A descriptor for another process, which the caller closes.
  CUresult export_fd(int* fd, CUmemGenericAllocationHandle handle);
  // `fd` stays the caller's. The same memory imported twice is one handle with two uses.
  CUresult import_fd(CUmemGenericAllocationHandle* handle, int fd);

  // The file to map physical memory of.
  [[nodiscard]] int fd() const { return books_.fd(); }
  // Null: no such handle.
  Physical* find(CUmemGenericAllocationHandle handle);
  // What is mapped may lose its last handle: these keep it.
  void add_mapping(CUmemGenericAllocationHandle handle);
  void remove_mapping(CUmemGenericAllocationHandle handle);

 private:
  void free_unused(CUmemGenericAllocationHandle handle);
  CUmemGenericAllocationHandle add(const Physical& physical);

  Books& books_;
  const bool has_host_memory_;
  std::map<CUmemGenericAllocationHandle, Physical> by_handle_;
  CUmemGenericAllocationHandle next_handle_ = 0x1000;
};

}  // namespace fakecuda
