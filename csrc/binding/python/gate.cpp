// How a thread of Python waits for a lease.
//
// The wait happens in C++ without the GIL, in slices. Between two slices the thread looks for
// signals, since a handler of Python runs only on this thread and only with the GIL. If a signal
// has come, spilled memory is made usable first: the handler is user code, and may use any tensor.
// If the handler raises, the place in the queue is given up and the exception goes on.
//
// What may go wrong: the coordinator is lost during the wait. The client thread finds another one
// meanwhile, and the wait goes on there. A wait of more than five seconds is said on stderr, with
// who has the lease.
#include "csrc/binding/python/gate.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <pybind11/pybind11.h>

#include "csrc/base/clock.h"
#include "csrc/binding/python/errors.h"
#include "csrc/binding/python/interrupts.h"
#include "csrc/binding/python/profiler_range.h"
#include "csrc/client/gate/long_waits.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

// Half of what Ctrl-C may take where no memory has to be shown first.
constexpr Nanos kSlice = millis(50);

// The name of a wait in the profiles of torch.profiler.
constexpr const char* kWaitInProfiles = "gpushare: waiting for the device";

client::LongWaits g_long_waits;  // under the GIL

// One slice. kTimedOut: nothing has happened, and the thread may look for signals.
Result<client::GateResult> wait_without_gil(client::Runtime& runtime) {
  const py::gil_scoped_release release;
  return runtime.begin_iteration(kSlice);
}

client::GateResult stop_without_gil(client::Runtime& runtime, client::Safepoint where) {
  const py::gil_scoped_release release;
  return runtime.safepoint(where, kSlice);
}

// Gives up the wait inside an iteration. false: that cannot be now, and the thread has to go on
// waiting.
bool leave_without_gil(client::Runtime& runtime) {
  const py::gil_scoped_release release;
  return runtime.leave_safepoint();
}

// Runs what Python has for the signals that came. A handler that raises ends the wait: its
// exception is kept while the place is given up, which needs the GIL to be free. Memory comes back
// meanwhile, which may take long. If another handler raises then, its exception is the one that
// the program gets: SIGTERM after Ctrl-C ends the program.
void run_handlers(client::Runtime& runtime) {
  if (PyErr_CheckSignals() == 0) return;
  const py::error_already_set raised;
  {
    const py::gil_scoped_release release;
    runtime.give_up();
  }
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  throw raised;
}

// A handler may use what was spilled meanwhile.
void show_memory(client::Runtime& runtime) {
  const py::gil_scoped_release release;
  runtime.show_memory();
}

// Not through Python: a handler would run in the code that writes.
void say_who_holds_it(client::Runtime& runtime, Nanos began) {
  const py::gil_scoped_release release;
  // On a terminal a progress bar may stand in this line: it is taken away, and comes back below.
  const char* const fresh_line = ::isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "";
  const std::string line =
      fmt::format("{}gpushare: waiting for {:.0f} s: {}\n", fresh_line,
                  to_seconds(monotonic_now() - began), runtime.explain(seconds(1)));
  // A program may have closed it.
  static_cast<void>(std::fputs(line.c_str(), stderr));
}

}  // namespace

void leave_gate(client::Runtime& runtime, wire::BoundaryKind kind, bool is_optimizer_step) {
  if (!runtime.end_at_once(kind, is_optimizer_step)) return;
  const py::gil_scoped_release release;
  runtime.close_at_boundary();
}

// A handler that raises ends the wait without a lease, if the gate can be closed. While a stream is
// captured it cannot, so the exception comes once there is a lease again.
void wait_at_safepoint(client::Runtime& runtime, client::Safepoint where) {
  const ProfilerRange range(kWaitInProfiles);
  while (stop_without_gil(runtime, where) != client::GateResult::kEntered) {
    if (PyErr_CheckSignals() == 0) continue;
    const py::error_already_set interrupt;
    while (!leave_without_gil(runtime)) {
      if (stop_without_gil(runtime, where) == client::GateResult::kEntered) break;
    }
    throw interrupt;
  }
}

// In each step: the GIL is let go only where something has to be waited for.
std::uint64_t wait_for_step(client::Runtime& runtime) {
  if (runtime.has_late()) {
    const py::gil_scoped_release release;
    runtime.wait_for_late();
  }
  return runtime.num_leases();
}

// Nearly every call ends at the first line. Only then is the watch for signals made, since it costs
// system calls.
void wait_in_gate(client::Runtime& runtime) {
  if (value_or_raise(runtime.enter_at_once())) return;
  const ProfilerRange range(kWaitInProfiles);
  SignalWatch signals;
  const Nanos began = monotonic_now();
  // What has come before the watch began is not seen by it, and no memory has moved yet.
  run_handlers(runtime);
  while (value_or_raise(wait_without_gil(runtime)) != client::GateResult::kEntered) {
    if (signals.has_come()) {
      show_memory(runtime);
      run_handlers(runtime);
      signals.go_on();
    }
    if (g_long_waits.is_due(began, monotonic_now())) say_who_holds_it(runtime, began);
  }
}

}  // namespace gpushare::binding
