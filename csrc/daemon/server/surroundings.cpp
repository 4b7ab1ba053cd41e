// Looks for neighbours on a CPU only: there a neighbour is a process that has torch in memory. For
// a CUDA device the jobs report what others hold there, in bytes (sched/memory/device_memory.h), so
// the list stays empty.
#include "csrc/daemon/server/surroundings.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "csrc/daemon/files/device_claim.h"
#include "csrc/wire/device_name.h"

namespace gpushare::daemon {

Surroundings::Surroundings(std::vector<std::string> devices) : devices_(std::move(devices)) {}

bool Surroundings::is_older_than(Nanos most_age, Nanos now) const {
  return !looked_at_.has_value() || now - *looked_at_ > most_age;
}

void Surroundings::look(const std::set<std::int32_t>& jobs, Nanos now) {
  const bool has_cpu = !std::all_of(devices_.begin(), devices_.end(),
                                    [](const auto& name) { return wire::is_cuda(name); });
  neighbours_ = has_cpu ? find_neighbours(jobs) : Neighbours();
  warnings_.clear();
  for (const std::string& device : devices_) {
    for (const OtherCoordinator& other : find_other_coordinators(device))
      warnings_.push_back(warning_text(other, device) + ": each gives away all of it");
  }
  looked_at_ = now;
}

}  // namespace gpushare::daemon
