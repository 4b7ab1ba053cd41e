// The compiled module _C: what python/gpushare/_C.pyi describes, and nothing else.
//
// install() reads Python's settings (install_options.h), makes the device and installs the
// process's one object. Functions of the job and of its memory need that object, and raise an error
// without it. Functions that may wait, or that take a lock which may be held for long, let go of
// the GIL first. Python's other threads would stand still otherwise, and one of them may be what is
// waited for.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "csrc/base/log.h"
#include "csrc/binding/install_options.h"
#include "csrc/binding/job_functions.h"
#include "csrc/binding/process/installed.h"
#include "csrc/binding/process/process.h"
#include "csrc/binding/python/errors.h"
#include "csrc/binding/python/module_calls.h"
#include "csrc/binding/python/simulation.h"
#include "csrc/binding/python/stats_dict.h"
#include "csrc/binding/watch/watch_calls.h"
#include "csrc/client/link/coordinator_program.h"
#include "csrc/plugin/segment_plugin.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

void install(const py::kwargs& given) {
  InstallOptions options = read_install_options(given);
  // Later settings are ignored, as Process::install() would do; the device is not even made.
  if (Process::is_installed()) return;
  std::unique_ptr<TorchDevice> shared =
      options.cuda_index < 0 ? make_cpu_device()
                             : value_or_raise(make_cuda_device(options.cuda_index, options.cuda));
  raise_if_error(Process::install(std::move(shared), std::move(options.config),
                                  log::parse_level(options.log_level)));
}

// For `gpushare doctor` and the choice of a device. No CUDA context is made for it.
py::dict device_info(int index) {
  const CudaDeviceInfo info = value_or_raise(cuda_device_info(index));
  py::dict result;
  result["index"] = info.index;
  result["uuid"] = info.uuid;
  result["name"] = info.name;
  result["total_bytes"] = info.total.value();
  result["driver_version"] = info.driver_version;
  result["can_reach_spilled"] = info.can_reach_spilled;
  return result;
}

// Without the GIL: a close that is under way holds the lock that this waits for, and may hold it
// for as long as the device takes.
void tell_capture(bool is_beginning) {
  const py::gil_scoped_release release;
  note_capture(is_beginning);
}

// Waits until it listens, so the GIL is free meanwhile.
void start_coordinator(const std::string& program,
                       const std::string& socket_path,
                       const std::vector<std::string>& more_args,
                       double timeout_seconds) {
  const Nanos timeout{static_cast<std::int64_t>(timeout_seconds * 1e9)};
  Status status;
  {
    const py::gil_scoped_release release;
    status = client::start_coordinator(program, socket_path, more_args, timeout);
  }
  raise_if_error(status);
}

// The GIL is taken back before the error is raised, since raising needs it.
void share() {
  Status status;
  {
    const py::gil_scoped_release release;
    status = begin_sharing();
  }
  raise_if_error(status);
}

// Returns the bytes that went back to the system. It waits for the allocator's lock, which a close
// may hold, so the GIL is free.
std::int64_t empty_cache() {
  Process& process = installed();
  const py::gil_scoped_release release;
  return process.allocator().empty_cache().value();
}

// What gpushare.stats shows, under the names of torch.cuda's functions where there are such.
void define_memory_functions(py::module_& module) {
  module.def("memory_stats", [] { return to_dict(installed().allocator().stats()); });
  module.def("memory_snapshot", [] { return to_list(installed().allocator().snapshot()); });
  module.def("reset_peak_memory_stats", [] { installed().allocator().reset_peak_stats(); });
  module.def("reset_accumulated_memory_stats",
             [] { installed().allocator().reset_accumulated_stats(); });
  module.def("empty_cache", &empty_cache);
  module.def("live_bytes", [] { return installed().device().live().value(); });
  module.def("reserved_range", [] {
    const auto [base, size] = installed().allocator().reserved_range();
    return std::pair(reinterpret_cast<std::uintptr_t>(base), size.value());
  });
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.attr("BUILT_FOR_TORCH") = GS_TORCH_VERSION;
  module.def("set_log_level",
             [](const std::string& level) { log::set_level(log::parse_level(level)); });
  module.def("install", &install);
  module.def("is_installed", &Process::is_installed);
  module.def("segment_plugin_is_intact", &plugin::segment_plugin_is_intact);
  module.def("cuda_device_info", &device_info, py::arg("index"));
  module.def("start_coordinator", &start_coordinator, py::arg("program"), py::arg("socket_path"),
             py::arg("more_args"), py::arg("timeout_seconds"));
  module.def("begin_sharing", &share);
  module.def("end_sharing", &end_sharing, py::call_guard<py::gil_scoped_release>());
  module.def("note_capture", &tell_capture, py::arg("is_beginning"));
  define_job_functions(module);
  define_memory_functions(module);
  define_simulation_functions(module);
  define_module_calls(module);
  define_watch(module);
}

}  // namespace gpushare::binding
