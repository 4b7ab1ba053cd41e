// Calls of chosen torch modules go through functions of ours, and nothing of that is in the
// modules: not in their __dict__, their hooks, what pickle writes of them or torch.compile traces.
#pragma once

#include <pybind11/pybind11.h>

namespace gpushare::binding {

// Adds the type ModuleCalls to the module (see _C.pyi).
void define_module_calls(pybind11::module_& module);

}  // namespace gpushare::binding
