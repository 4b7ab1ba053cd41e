// The functions around the program's calls that automatic boundaries see: C functions, so that they
// cost little, show in no traceback, and have no code that torch.compile could trace or guard.
#pragma once

#include <pybind11/pybind11.h>

namespace gpushare::binding {

// Adds the type Watch and these functions to the module (see _C.pyi).
void define_watch(pybind11::module_& module);

}  // namespace gpushare::binding
