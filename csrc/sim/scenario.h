// A scenario's text (simulator.h has the format) as data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/sched/coordinator.h"
#include "csrc/wire/messages.h"

namespace gpushare::sim {

struct JobSpec {
  std::string name;
  Nanos arrival;
  Nanos iteration;
  Nanos gap;
  std::uint64_t iterations = 0;
  Bytes live;
  Bytes peak;
  double weight = 1;
  wire::Priority priority = wire::Priority::kNormal;
  Bytes limit;  // 0: none
};

struct Scenario {
  sched::CoordinatorOptions options;
  Bytes bandwidth = gib(4);  // a second
  Nanos switch_cost = micros(100);
  std::optional<Nanos> until;
  std::vector<JobSpec> jobs;
};

// errors: kInvalidArgument, with the line's number.
Result<Scenario> parse_scenario(std::string_view text);

}  // namespace gpushare::sim
