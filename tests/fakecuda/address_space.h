// Reserved addresses and what is mapped there: the rules of the driver's virtual memory calls.
//
// A mapping is a whole physical allocation at a multiple of the granularity inside one reservation;
// it is unmapped whole; it has no access until that is set, each time it is mapped.
#pragma once

#include <cuda.h>

#include <map>
#include <optional>

#include "tests/fakecuda/physical.h"
#include "tests/fakecuda/range.h"

namespace fakecuda {

struct Mapping {
  size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  bool is_on_host = false;
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;       // the device's
  CUmemAccess_flags host_access = CU_MEM_ACCESS_FLAGS_PROT_NONE;  // the CPU's
};

class AddressSpace {
 public:
  explicit AddressSpace(PhysicalMemory& physical) : physical_(physical) {}

  CUresult reserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr hint);
  // errors: INVALID_VALUE unless it is a whole reservation without mappings.
  CUresult free(Range range);
  CUresult map(Range range, size_t offset, CUmemGenericAllocationHandle handle);
  // errors: INVALID_VALUE unless the range is a row of whole mappings; nothing is unmapped then.
  CUresult unmap(Range range);
  // errors: INVALID_VALUE also for the CPU's access to what is not the host's.
  CUresult set_access(Range range, const CUmemAccessDesc& wanted);

  // Whether the address lies in a reservation, mapped or not.
  [[nodiscard]] bool is_reserved(uintptr_t address) const;
  // The mapping an address lies in, with its start.
  [[nodiscard]] std::optional<std::pair<Range, Mapping>> mapping_at(uintptr_t address) const;
  // Whether all of the range is mapped with this access, for the device or for the CPU.
  [[nodiscard]] bool is_accessible(Range range, bool is_write, bool by_device) const;

 private:
  // Whether the range is a row of whole mappings without a hole.
  [[nodiscard]] bool is_row_of_mappings(Range range) const;

  PhysicalMemory& physical_;
  std::map<uintptr_t, size_t> reservations_;
  std::map<uintptr_t, Mapping> mappings_;
};

}  // namespace fakecuda
