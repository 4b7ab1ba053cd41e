// What the job does, as functions for Python. Each finds the process's object first, and is an
// error of ours without it.
//
// A function that may wait for the coordinator, for a copy or for another thread's lock gives the
// GIL up meanwhile. Python's other threads would stand still otherwise, and one of them may be what
// is waited for. The function takes the GIL back before it raises.
//
// What may go wrong: the coordinator is lost, memory has no place, Ctrl-C comes during a wait. Each
// is a Status below, and becomes an exception here (python/errors.h).
#include "csrc/binding/job_functions.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pybind11/stl.h>

#include "csrc/base/log.h"
#include "csrc/binding/process/boundary_kinds.h"
#include "csrc/binding/process/installed.h"
#include "csrc/binding/python/errors.h"
#include "csrc/binding/python/gate.h"
#include "csrc/binding/python/keywords.h"
#include "csrc/binding/python/stats_dict.h"
#include "csrc/wire/codec.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

// The comparison is written so that NaN is refused too. Longer times are cut, since they would not
// fit into 64 bits of nanoseconds.
Nanos to_nanos(double seconds) {
  constexpr double kLongest = 1e9;
  if (!(seconds >= 0.0)) throw py::value_error("a time in seconds must be >= 0");
  return Nanos{static_cast<std::int64_t>(std::min(seconds, kLongest) * 1e9)};
}

// May start a coordinator and wait for it, so the GIL is free meanwhile.
void attach() {
  Process& process = installed();
  Status status;
  {
    const py::gil_scoped_release release;
    status = process.runtime().attach();
  }
  raise_if_error(status);
}

// A keyword that Python passes and nobody reads here is an error, so the two sides cannot drift
// apart.
client::RegisterOptions read_register_options(const py::kwargs& given) {
  Keywords keywords("register_job", given);
  const auto settings = keywords.required<std::string>("settings");
  client::RegisterOptions options{.name = keywords.required<std::string>("name"),
                                  .group = keywords.required<std::string>("group"),
                                  .settings = value_or_raise(wire::decode_settings(settings)),
                                  .elastic_threads = keywords.required<bool>("elastic_threads"),
                                  .fingerprint = keywords.required<std::uint64_t>("fingerprint"),
                                  .gang = keywords.required<std::string>("gang"),
                                  .rank = keywords.required<std::uint32_t>("rank"),
                                  .ranks = keywords.required<std::uint32_t>("ranks"),
                                  .arbiter = keywords.required<std::string>("arbiter")};
  keywords.check_all_read();
  return options;
}

std::uint64_t register_job(const py::kwargs& given) {
  Process& process = installed();
  const client::RegisterOptions options = read_register_options(given);
  Status status;
  {
    const py::gil_scoped_release release;
    status = process.runtime().register_job(options);
  }
  raise_if_error(status);
  return process.runtime().stats().job.value;
}

void unregister_job(bool is_exiting) {
  client::Runtime& runtime = installed().runtime();
  const py::gil_scoped_release release;
  if (is_exiting) return runtime.unregister_at_exit();
  // The process goes on, alone perhaps, so its memory must be in place.
  const Status held = runtime.hold();
  if (!held.ok()) log::warn("memory stays in the host tier: {}", held.message());
  runtime.unregister_job();
  runtime.regain_cores();
  if (held.ok()) runtime.let_go();
}

void hold() {
  Process& process = installed();
  Status status;
  {
    const py::gil_scoped_release release;
    status = process.runtime().hold();
  }
  raise_if_error(status);
}

void park() {
  Process& process = installed();
  const py::gil_scoped_release release;
  process.runtime().park();
}

void begin_iteration() { wait_in_gate(installed().runtime()); }

// At each block: mostly nobody is there who could ask.
bool safepoint(bool is_in_backward) {
  client::Runtime& runtime = installed().runtime();
  if (!runtime.may_be_interrupted()) return false;
  const client::Safepoint where =
      is_in_backward ? client::Safepoint::kBackward : client::Safepoint::kForward;
  if (!runtime.is_in_iteration_here(where)) return false;
  if (runtime.is_asked_inside()) wait_at_safepoint(runtime, where);
  return true;
}

void end_iteration(std::string_view kind, bool is_optimizer_step) {
  leave_gate(installed().runtime(), kind_of(kind), is_optimizer_step);
}

std::uint64_t begin_step() { return wait_for_step(installed().runtime()); }

void mark_late(const std::vector<std::uintptr_t>& addresses) {
  installed().allocator().mark_late(addresses);
}

void close_lease(std::string_view text) {
  client::Runtime& runtime = installed().runtime();
  const wire::BoundaryKind kind = kind_of(text);
  const py::gil_scoped_release release;
  runtime.close_lease(kind);
}

std::string explain(double timeout_seconds) {
  Process& process = installed();
  const Nanos timeout = to_nanos(timeout_seconds);
  const py::gil_scoped_release release;
  return process.runtime().explain(timeout);
}

void spill_and_restore() {
  Process& process = installed();
  Status status;
  {
    const py::gil_scoped_release release;
    status = process.runtime().spill_and_restore();
  }
  raise_if_error(status);
}

}  // namespace

void define_job_functions(py::module_& module) {
  module.def("attach", &attach);
  module.def("register_job", &register_job);
  module.def("unregister_job", &unregister_job, py::kw_only(), py::arg("is_exiting") = false);
  module.def("begin_iteration", &begin_iteration);
  module.def("safepoint", &safepoint);
  module.def("end_iteration", &end_iteration, py::arg("kind"), py::arg("is_optimizer_step"));
  module.def("begin_step", &begin_step);
  module.def("mark_late", &mark_late, py::arg("addresses"));
  module.def("is_in_iteration", [] { return installed().runtime().is_in_iteration(); });
  module.def("close_lease", &close_lease, py::arg("kind"));
  module.def("promise_iterations", [] { installed().runtime().promise_iterations(); });
  module.def("park", &park);
  module.def("hold", &hold);
  module.def("let_go", [] { installed().runtime().let_go(); });
  module.def("explain", &explain, py::arg("timeout_seconds"));
  module.def("spill_and_restore", &spill_and_restore);
  module.def("job_stats", [] { return to_dict(installed().runtime().stats()); });
}

}  // namespace gpushare::binding
