// What automatic boundaries read of torch and of the program's values. All of it is read in C++, so
// no code of the program runs: no property, no `__torch_function__`, no `values()` of its own.
//
// pre of all functions here: GIL held.
#pragma once

#include <pybind11/pybind11.h>

namespace gpushare::binding {

// Whether this thread is inside autograd's engine.
[[nodiscard]] bool is_in_backward();
[[nodiscard]] bool is_grad_enabled();
// torch.compiler.is_compiling(), outside traced code: an export runs the program with it set.
[[nodiscard]] bool is_compiling();
// Whether this value is a tensor that requires gradients.
[[nodiscard]] bool requires_grad(PyObject* value);
// Whether a backward may follow from this value: it is such a tensor, or a
// tuple, list or dict that has such a tensor right inside.
[[nodiscard]] bool may_be_differentiated(PyObject* value);
// Whether torch.distributed may have been initialized. Cheap; gangs.is_distributed() knows.
[[nodiscard]] bool may_be_distributed();

}  // namespace gpushare::binding
