// The memory of a CUDA device that is not there: chunks of a memfd, mapped into reserved address
// space with real mappings, so that the CPU faults where a kernel would.
//
// It aborts at every misuse that the driver refuses or, worse, lets pass: mapping over a mapping,
// unmapping part of one, releasing twice, freeing address space that is mapped. Fresh memory is
// poisoned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/vm/cuda_types.h"
#include "csrc/vm/vmm.h"

namespace gpushare::testing {

class FakeCudaMemory {
 public:
  explicit FakeCudaMemory(Bytes size);
  ~FakeCudaMemory();
  FakeCudaMemory(const FakeCudaMemory&) = delete;
  FakeCudaMemory& operator=(const FakeCudaMemory&) = delete;

  std::byte* reserve(std::size_t size, std::size_t alignment);
  void free_address(const std::byte* base, std::size_t size);
  // None: the device is full. pre: whole chunks.
  std::optional<vm::cuda::MemoryHandle> create(std::size_t size);
  void release(vm::cuda::MemoryHandle handle);
  void map(std::byte* address, std::size_t size, vm::cuda::MemoryHandle handle);
  void unmap(std::byte* address, std::size_t size);
  void allow_access(std::byte* address, std::size_t size);

  [[nodiscard]] bool is_accessible(const std::byte* address, std::size_t size) const;
  [[nodiscard]] Bytes used() const;
  [[nodiscard]] std::size_t num_handles() const;
  [[nodiscard]] std::size_t num_mapped() const { return mapped_.size(); }
  [[nodiscard]] std::size_t num_reserved() const { return reserved_.size(); }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  struct Piece {
    std::vector<std::size_t> offsets;  // of its chunks, anywhere in the file
    bool is_held = true;               // not released
    bool is_mapped = false;
  };
  struct Mapping {
    vm::cuda::MemoryHandle handle;
    const std::byte* first;  // chunk of the piece
    bool has_access = false;
  };
  void forget_unused(vm::cuda::MemoryHandle handle);
  void check_reserved(const std::byte* address, std::size_t size) const;

  const Bytes size_;
  const UniqueFd fd_;
  std::byte* view_;
  std::map<const std::byte*, std::size_t> reserved_;
  // By size: they come again, as the driver's may.
  std::multimap<std::size_t, std::byte*> given_back_;
  std::map<vm::cuda::MemoryHandle, Piece> pieces_;
  std::map<const std::byte*, Mapping> mapped_;  // by chunk
  std::set<std::size_t> free_offsets_;
  vm::cuda::MemoryHandle last_handle_ = 0;
};

}  // namespace gpushare::testing
