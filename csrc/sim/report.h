// What a simulation found, as JSON text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/sim/scenario.h"
#include "csrc/sim/sim_job.h"

namespace gpushare::sim {

std::string make_report(const Scenario& scenario,
                        const std::vector<std::unique_ptr<SimJob>>& jobs,
                        std::uint64_t switches,
                        Nanos now);

}  // namespace gpushare::sim
