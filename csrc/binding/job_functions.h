// The functions of _C that concern the job: attaching, registering, the gate, boundaries.
#pragma once

#include <pybind11/pybind11.h>

namespace gpushare::binding {

void define_job_functions(pybind11::module_& module);

}  // namespace gpushare::binding
