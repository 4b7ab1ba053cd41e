// Shares are numbered in the order of lanes, so that a holder keeps its number while leases of
// later lanes come and go. A holder is told only if its share changed, and only if it can be: a job
// that has no page yet is told when it has one.
#include "csrc/sched/side_by_side/core_shares.h"

#include <cstdint>
#include <utility>

#include "csrc/sched/side_by_side/beside.h"
#include "csrc/wire/device_name.h"

namespace gpushare::sched {

// A device that is no CPU has no cores to divide.
void share_cores(Step& step) {
  Device& device = step.device();
  if (wire::is_cuda(device.name)) return;
  const auto of = static_cast<std::uint16_t>(num_held(device));
  std::uint16_t number = 0;
  for (const Lane& lane : device.lanes) {
    if (!lane.is_running()) continue;
    const wire::CoreShare share{.number = number++, .of = of};
    const Job& holder = std::as_const(step).table().at(lane.lease->job());
    if (!holder.has_page() || holder.served.core_share == share) continue;
    step.table().at(holder.id).served.core_share = share;
    step.act({.kind = PageAction::Kind::kShareCores,
              .job = holder.id,
              .term = holder.served.term,
              .grant_n = 0,
              .cores = share});
  }
}

}  // namespace gpushare::sched
