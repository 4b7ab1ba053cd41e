// The memory of lanes' pools: a memfd for each user, made when its first job is told of it.
//
// The file is as long as slot numbers go and holds pages only where a job has mapped a slot.
// Emptying gives a slot's pages back at once, whoever still has it mapped: jobs use only slots of
// the table that came with their lease. The file goes with its last mapping after the pool's end.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sched/job/ready.h"

namespace gpushare::daemon {

class LaneFiles {
 public:
  // Its descriptor, which stays ours. errors: kIo (no descriptors, no memory).
  Result<int> file_of(std::uint32_t uid);
  void carry_out(const std::vector<sched::LaneAction>& actions);

 private:
  std::map<std::uint32_t, UniqueFd> files_;  // by user
};

}  // namespace gpushare::daemon
