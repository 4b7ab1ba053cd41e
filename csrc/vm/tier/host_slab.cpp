// Which slab there is, by the folder: without one RAM, with one RAM first and then a file.
#include "csrc/vm/tier/host_slab.h"

#include "csrc/vm/tier/file_slab.h"
#include "csrc/vm/tier/ram_slab.h"
#include "csrc/vm/tier/tiered_slab.h"

namespace gpushare::vm {

Result<std::unique_ptr<HostSlab>> make_host_slab(const std::string& folder,
                                                 const HostBytes& budgets,
                                                 HostPinner* pinner) {
  return folder.empty() ? RamSlab::create(budgets.ram, pinner)
                        : TieredSlab::create(folder, budgets, pinner);
}

// For one tier alone, without a pinner: what does not come from a job's settings.
Result<std::unique_ptr<HostSlab>> make_host_slab(const std::string& folder, Bytes budget) {
  return folder.empty() ? RamSlab::create(budget) : FileSlab::create(folder, budget);
}

}  // namespace gpushare::vm
