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

#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/cuda/cuda_types.h"

#include "tests/cpp/support/vm_kept_file.h"

namespace gpushare::testing {

class FakeCudaMemory {
 public:
  explicit FakeCudaMemory(Bytes size);
  ~FakeCudaMemory();
  FakeCudaMemory(const FakeCudaMemory&) = delete;
  FakeCudaMemory& operator=(const FakeCudaMemory&) = delete;

  std::byte* reserve(std::size_t size, std::size_t alignment);
  void free_address(const std::byte* base, std::size_t size);
  enum class Side : std::uint8_t { kDevice, kHost };
  // None: the device is full. pre: whole chunks.
  std::optional<vm::cuda::MemoryHandle> create(std::size_t size, Side side = Side::kDevice);
  void release(vm::cuda::MemoryHandle handle);
  void map(std::byte* address, std::size_t size, vm::cuda::MemoryHandle handle);
  void unmap(std::byte* address, std::size_t size);
  // The CPU may only have access to the host's memory.
  void allow_access(std::byte* address, std::size_t size, Side to);

  // By the device.
  [[nodiscard]] bool is_accessible(const std::byte* address, std::size_t size) const;
  // Of the device's memory, and of the host's.
  [[nodiscard]] Bytes used(Side side = Side::kDevice) const;
  [[nodiscard]] std::size_t num_handles() const;
  [[nodiscard]] std::size_t num_mapped() const { return mapped_.size(); }
  [[nodiscard]] std::size_t num_reserved() const { return reserved_.size(); }
  [[nodiscard]] Bytes size() const { return size_; }

 private:
  static constexpr Bytes kHostSize = gib(1);
  struct Piece {
    std::vector<std::size_t> offsets;  // of its chunks, anywhere in the file
    bool is_held = true;               // not released
    int num_mappings = 0;
    Side side = Side::kDevice;
  };
  struct Mapping {
    vm::cuda::MemoryHandle handle;
    const std::byte* first;  // chunk of the piece
    bool has_access = false;
  };
  std::set<std::size_t>& free_of(Side side) { return free_offsets_[std::size_t(side)]; }
  void forget_unused(vm::cuda::MemoryHandle handle);
  void check_reserved(const std::byte* address, std::size_t size) const;

  const Bytes size_;
  const KeptFile file_;  // the device's memory, and the host's behind it
  std::map<const std::byte*, std::size_t> reserved_;
  // By size: they come again, as the driver's may.
  std::multimap<std::size_t, std::byte*> given_back_;
  std::map<vm::cuda::MemoryHandle, Piece> pieces_;
  std::map<const std::byte*, Mapping> mapped_;  // by chunk
  // Each side's, in the file.
  std::set<std::size_t> free_offsets_[2];
  vm::cuda::MemoryHandle last_handle_ = 0;
};

}  // namespace gpushare::testing
