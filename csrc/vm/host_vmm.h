// Vmm on a machine without a GPU: a byte-budgeted part of RAM is the device.
//
// Reserved address space is PROT_NONE anonymous memory; backing makes chunks accessible, asks for
// huge pages and populates them at once, so that the kernel's figure for the range (smaps, Rss)
// equals the books. Memory is private: a forked child keeps its copies, and a parent that unbacks
// gives up only its own.
//
// Only backed chunks are accessible. So no page outside them can be populated, neither by a stray
// access nor by the kernel's huge page thread, whose unit is a chunk.
#pragma once

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/vmm.h"

namespace gpushare::vm {

class HostVmm final : public Vmm {
 public:
  Result<AddressRange> reserve(Bytes size) override;
  Status back(std::byte* address, Bytes size) override;
  Status unback(std::byte* address, Bytes size) override;
  Status copy_out(const std::byte* device, std::byte* host, Bytes size) override;
  Status copy_in(const std::byte* host, std::byte* device, Bytes size) override;
  [[nodiscard]] bool is_host_accessible() const override { return true; }

 private:
  void unreserve(std::byte* base, Bytes size) override;
};

}  // namespace gpushare::vm
