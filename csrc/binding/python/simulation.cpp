// The simulator for Python. A simulation runs without the GIL, so other threads of the program go
// on. Now and then it looks for Ctrl-C, which takes the GIL for that moment.
#include "csrc/binding/python/simulation.h"

#include <string>
#include <utility>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "csrc/binding/python/errors.h"
#include "csrc/binding/python/interrupts.h"
#include "csrc/sim/simulator.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

// Ctrl-C ends a simulation with Python's own error, which raise() finds pending.
bool keeps_going() { return !is_interrupted(); }

// The report is JSON, which Python parses. An error of the scenario is a ValueError with the line's
// number.
std::string simulate(const std::string& scenario) {
  Result<std::string> report;
  {
    const py::gil_scoped_release release;
    report = sim::run_scenario(scenario, keeps_going);
  }
  return value_or_raise(std::move(report));
}

std::string simulate_trace(const std::string& device,
                           const std::string& trace,
                           bool jobs,
                           bool leases) {
  Result<std::string> report;
  {
    const py::gil_scoped_release release;
    report = sim::run_trace(device, trace, {.jobs = jobs, .leases = leases}, keeps_going);
  }
  return value_or_raise(std::move(report));
}

}  // namespace

void define_simulation_functions(py::module_& module) {
  module.def("simulate", &simulate, py::arg("scenario"));
  module.def("simulate_trace", &simulate_trace, py::arg("device"), py::arg("trace"), py::kw_only(),
             py::arg("jobs") = false, py::arg("leases") = false);
  module.def("policy_names", &sim::policy_names);
}

}  // namespace gpushare::binding
