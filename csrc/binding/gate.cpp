#include "csrc/binding/gate.h"

#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include "csrc/base/clock.h"
#include "csrc/binding/errors.h"
#include "csrc/binding/interrupts.h"
#include "csrc/client/long_waits.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

// Half of the promise: the handler runs and the exception unwinds in the other half.
constexpr Nanos kSlice = millis(50);

client::LongWaits g_long_waits;  // under the GIL

Result<client::GateResult> wait_without_gil(client::Runtime& runtime) {
  const py::gil_scoped_release release;
  return runtime.begin_iteration(kSlice);
}

client::GateResult stop_without_gil(client::Runtime& runtime, client::Safepoint where) {
  const py::gil_scoped_release release;
  return runtime.safepoint(where, kSlice);
}

bool leave_without_gil(client::Runtime& runtime) {
  const py::gil_scoped_release release;
  return runtime.leave_safepoint();
}

// They may use memory that was spilled meanwhile.
void run_handlers(client::Runtime& runtime) {
  {
    const py::gil_scoped_release release;
    runtime.show_memory();
  }
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// Not through Python: a handler would run in the code that writes.
void say_who_holds_it(client::Runtime& runtime, Nanos began) {
  const py::gil_scoped_release release;
  const std::string who = runtime.explain(seconds(1));
  fmt::print(stderr, "gpushare: waiting for {:.0f} s: {}\n", to_seconds(monotonic_now() - began),
             who);
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

void wait_in_gate(client::Runtime& runtime) {
  if (value_or_raise(runtime.enter_at_once())) return;
  SignalWatch signals;
  const Nanos began = monotonic_now();
  try {
    // What has come before the watch began is not seen by it, and no memory has moved yet.
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    while (value_or_raise(wait_without_gil(runtime)) != client::GateResult::kEntered) {
      if (signals.has_come()) run_handlers(runtime);
      if (g_long_waits.is_due(began, monotonic_now())) say_who_holds_it(runtime, began);
    }
  } catch (...) {
    const py::gil_scoped_release release;
    runtime.give_up();
    throw;
  }
}

}  // namespace gpushare::binding
