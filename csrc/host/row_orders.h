// Carries the orders of gang rows out on the devices of a host. The daemon and the simulator do it
// in the same way, each with its own machines.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/host/gang_rows.h"
#include "csrc/sched/job/job.h"

namespace gpushare::host {

// The machines of the devices, as the rows act on them. Both calls are no-ops for a rank that is
// gone.
class RowMachines {
 public:
  virtual ~RowMachines() = default;
  RowMachines(const RowMachines&) = delete;
  RowMachines& operator=(const RowMachines&) = delete;

  // The rank is told at which step it ends its lease by itself.
  virtual void set_stop_at(JobId rank, std::uint64_t stop_at) = 0;
  // Its device's machine is told when the rank may begin iterations; nothing: as any job.
  virtual void set_row(JobId rank, std::optional<sched::GangRow> row) = 0;

 protected:
  RowMachines() = default;
};

// First each rank is told the step at which to stop. Only then the machines are told, which may
// grant leases at once. So no rank starts before all of them know the step.
void carry_out(const std::vector<RankOrder>& orders, RowMachines& machines);

}  // namespace gpushare::host
