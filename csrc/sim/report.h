// The result of a simulation as JSON text (simulator.h has the form).
#pragma once

#include <string>

#include "csrc/sim/run/simulation.h"

namespace gpushare::sim {

struct Detail {
  bool jobs = true;     // a row of each job
  bool leases = false;  // and one of each lease
};

std::string make_report(const Simulation& simulation, const Detail& detail);

}  // namespace gpushare::sim
