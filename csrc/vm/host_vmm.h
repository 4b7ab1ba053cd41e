// Vmm on a machine without a GPU: a byte-budgeted part of RAM is the device.
//
// Reserved address space is PROT_NONE anonymous memory; backing makes chunks accessible, asks for
// huge pages and populates them at once, so that the kernel's figure for the range (smaps, Rss)
// equals the books. Memory is private: a forked child keeps its copies, and a parent that unbacks
// gives up only its own.
//
// Memory of a file is mapped over the reserved range, and the range's own memory over it again when
// it goes; which chunks are of a file is remembered, since they are given back another way.
//
// Only backed chunks are accessible. So no page outside them can be populated, neither by a stray
// access nor by the kernel's huge page thread, whose unit is a chunk.
#pragma once

#include <cstddef>
#include <map>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/vmm.h"

namespace gpushare::vm {

class HostVmm final : public Vmm {
 public:
  Result<AddressRange> reserve(Bytes size) override;
  Status back(std::byte* address, Bytes size) override;
  Status unback(std::byte* address, Bytes size) override;
  Status map_shared(std::byte* address, Bytes size, int file, Bytes offset) override;
  Status unmap_shared(std::byte* address, Bytes size) override;
  Status make_private(std::byte* address, Bytes size) override;
  Status copy_out(const std::byte* device, std::byte* host, Bytes size) override;
  Status copy_in(const std::byte* host, std::byte* device, Bytes size) override;
  [[nodiscard]] bool is_host_accessible() const override { return true; }

 private:
  // Where a chunk's bytes lie in a file.
  struct Shared {
    int file = -1;
    Bytes offset;
  };

  void unreserve(std::byte* base, Bytes size) override;
  [[nodiscard]] bool is_shared(const std::byte* address) const;
  Status unback_shared(std::byte* address, Bytes size);
  // Gives the files' parts of the range back, and forgets that they were mapped.
  Status release_files(std::byte* address, Bytes size);
  void forget_files(std::byte* address, Bytes size);

  mutable Mutex mu_;
  std::map<const std::byte*, Shared> shared_ GS_GUARDED_BY(mu_);  // by chunk
};

}  // namespace gpushare::vm
