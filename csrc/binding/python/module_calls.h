// Calls of chosen torch modules go through functions of ours, and nothing of that is in the
// modules: not in their __dict__, their hooks, what pickle writes of them or torch.compile traces.
#pragma once

#include <pybind11/pybind11.h>

namespace gpushare::binding {

// Adds the type ModuleCalls to the module (see _C.pyi).
void define_module_calls(pybind11::module_& module);

// args[0] is a module, and the rest are the arguments of its call, as vectorcall passes them. Makes
// the call as torch makes it without us, through what Module.compile has set for the module.
// Returns null with an error set if the call raises. pre: GIL held.
PyObject* make_stock_call(PyObject* const* args, Py_ssize_t num_args, PyObject* keywords);
// The same without what Module.compile has set, for code that is being traced.
PyObject* make_traced_call(PyObject* const* args, Py_ssize_t num_args, PyObject* keywords);

}  // namespace gpushare::binding
