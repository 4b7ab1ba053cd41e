#include "csrc/binding/gate.h"

#include <algorithm>

#include <pybind11/pybind11.h>

#include "csrc/base/clock.h"
#include "csrc/binding/errors.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

// Half of the promise: the handler runs and the exception unwinds in the other half.
constexpr Nanos kSlice = millis(50);

Result<client::GateResult> wait_without_gil(client::Runtime& runtime, Nanos timeout) {
  const py::gil_scoped_release release;
  return runtime.begin_iteration(timeout);
}

client::GateResult stop_without_gil(client::Runtime& runtime, client::Safepoint where) {
  const py::gil_scoped_release release;
  return runtime.safepoint(where, kSlice);
}

bool leave_without_gil(client::Runtime& runtime) {
  const py::gil_scoped_release release;
  return runtime.leave_safepoint();
}

}  // namespace

void wait_at_safepoint(client::Runtime& runtime, client::Safepoint where) {
  while (stop_without_gil(runtime, where) != client::GateResult::kEntered) {
    if (PyErr_CheckSignals() == 0) continue;
    const py::error_already_set interrupt;
    while (!leave_without_gil(runtime)) {
      if (stop_without_gil(runtime, where) == client::GateResult::kEntered) break;
    }
    throw interrupt;
  }
}

bool wait_in_gate(client::Runtime& runtime, Nanos timeout) {
  const Nanos deadline = monotonic_now() + timeout;
  for (;;) {
    const Nanos rest = deadline - monotonic_now();
    const Nanos slice = std::clamp(rest, Nanos{0}, kSlice);
    if (value_or_raise(wait_without_gil(runtime, slice)) == client::GateResult::kEntered) {
      return true;
    }
    if (PyErr_CheckSignals() != 0) {
      runtime.give_up();
      throw py::error_already_set();
    }
    if (rest <= slice) return false;
  }
}

}  // namespace gpushare::binding
