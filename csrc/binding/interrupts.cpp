#include "csrc/binding/interrupts.h"

#include <unistd.h>

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace gpushare::binding {

bool is_interrupted() {
  if (::gettid() != ::getpid() || Py_IsInitialized() == 0) return false;
  const py::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

void throw_pending_error() {
  const py::gil_scoped_acquire gil;
  throw py::error_already_set();
}

}  // namespace gpushare::binding
