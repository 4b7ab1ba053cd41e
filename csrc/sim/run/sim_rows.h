// The rows of a simulation's gangs: the host's own class decides (csrc/host/gang_rows.h). Here it
// is told what the daemon would tell it, and its orders are carried out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/host/gang_rows.h"
#include "csrc/host/row_orders.h"
#include "csrc/sim/run/sim_device.h"
#include "csrc/sim/run/sim_job.h"

namespace gpushare::sim {

class SimRows final : public RowWatch, private host::RowMachines {
 public:
  using Devices = std::vector<std::unique_ptr<SimDevice>>;

  // Both must outlive it. `devices` has all of them when the first rank arrives.
  SimRows(World& world, const Devices& devices);

  void join(const SimJob& rank, std::size_t device) override;
  void note(const SimJob& rank) override;
  void note_singles(std::size_t device, const sched::Coordinator& coordinator) override;

  // Whether anything is new since the last settle(), or its time has come.
  [[nodiscard]] bool is_due() const;
  void settle();
  // The time that was set for it has come.
  void on_time();

 private:
  void set_stop_at(JobId rank, std::uint64_t stop_at) override;
  void set_row(JobId rank, std::optional<sched::GangRow> row) override;
  void report(SimJob& rank);
  void report_steps();
  void plan();

  World& world_;
  const Devices& devices_;
  host::GangRows rows_;
  std::vector<std::optional<std::size_t>> device_of_;  // of each rank here, by its index
  std::set<std::size_t> news_;                         // ranks to report, by index
  std::set<std::size_t> with_leases_;  // gangs of which a rank may have a lease, by first rank
  std::vector<std::uint64_t> until_;   // of each rank's row, as its device was told; 0: closed
  bool is_new_ = false;
  std::optional<Nanos> look_at_;
  std::optional<Nanos> event_;  // set for look_at_, or earlier
};

}  // namespace gpushare::sim
