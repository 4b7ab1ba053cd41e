// The simulator (csrc/sim) as functions of the module.
#pragma once

#include <pybind11/pybind11.h>

namespace gpushare::binding {

void define_simulation_functions(pybind11::module_& module);

}  // namespace gpushare::binding
