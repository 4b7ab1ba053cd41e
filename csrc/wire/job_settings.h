// What a job's turns and its memory are bound by: the one list of such settings.
//
// A job says them when it registers (Register), people change most of them later (changes.h), and
// the coordinator decides by them (sched/job/settings.h). A new one is a field here, and
// CONTRIBUTING.md lists what else. What hands them on between Python and the coordinator takes the
// struct whole.
#pragma once

#include <cstdint>

#include "csrc/base/units.h"
#include "csrc/wire/priority.h"

namespace gpushare::wire {

struct JobSettings {
  Priority priority = Priority::kNormal;
  double weight = 1.0;      // share inside a priority; > 0
  Bytes memory_limit = {};  // 0: none
  Nanos deadline = {};      // for an iteration, since it wants a lease; 0: none
  double share_limit = 0;   // the most of the device's time; 0: none
  bool is_elastic = false;  // both limits bind only while others want what is beyond them
  std::uint64_t iterations_total = 0;  // 0: unknown
  bool operator==(const JobSettings&) const = default;
};

}  // namespace gpushare::wire
