// Looks for neighbours on a CPU only: there a neighbour is a process that has torch in memory. For
// a CUDA device the jobs report what others hold there, in bytes (sched/memory/device_memory.h), so
// the list stays empty.
#include "csrc/daemon/server/surroundings.h"

#include <string>
#include <utility>

#include "csrc/daemon/files/device_claim.h"
#include "csrc/wire/device_name.h"

namespace gpushare::daemon {

Surroundings::Surroundings(std::string device) : device_(std::move(device)) {}

bool Surroundings::is_older_than(Nanos most_age, Nanos now) const {
  return !looked_at_.has_value() || now - *looked_at_ > most_age;
}

void Surroundings::look(const std::set<std::int32_t>& jobs, Nanos now) {
  neighbours_ = wire::is_cuda(device_) ? Neighbours() : find_neighbours(jobs);
  warnings_.clear();
  for (const OtherCoordinator& other : find_other_coordinators(device_))
    warnings_.push_back(warning_text(other, device_));
  looked_at_ = now;
}

}  // namespace gpushare::daemon
