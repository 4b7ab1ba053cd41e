// What else uses these devices: processes that do not ask us, and other coordinators.
//
// Which problem it solves: looking for them reads /proc and takes milliseconds, and status and
// refusals ask for them often. So what was found is kept, and each caller says how old it may be.
//
// What it does not do: none of it enters the ledger. It is for people who read a status or an
// error.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/daemon/machine/neighbours.h"

namespace gpushare::daemon {

class Surroundings {
 public:
  explicit Surroundings(std::vector<std::string> devices = {});

  // Whether what was found last is older than `most_age`, or nothing was looked for yet.
  [[nodiscard]] bool is_older_than(Nanos most_age, Nanos now) const;
  // Looks anew. `jobs`: the processes that do ask.
  void look(const std::set<std::int32_t>& jobs, Nanos now);

  [[nodiscard]] const Neighbours& neighbours() const { return neighbours_; }
  // One line for each other coordinator of a device.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<std::string> devices_;
  Neighbours neighbours_;
  std::vector<std::string> warnings_;
  std::optional<Nanos> looked_at_;
};

}  // namespace gpushare::daemon
