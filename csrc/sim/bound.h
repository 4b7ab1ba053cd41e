// The least average completion time that any schedule could reach: an honest end of the scale that
// policies are compared on.
#pragma once

#include <vector>

#include "csrc/sim/scenario/scenario.h"

namespace gpushare::sim {

// A lower bound, in seconds, for these jobs of the scenario, with as many jobs side by side as it
// allows. Others that are left out only delay them. pre: at least one job.
double least_average_completion(const Scenario& scenario, const std::vector<const JobSpec*>& jobs);

}  // namespace gpushare::sim
