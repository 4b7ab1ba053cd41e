// What Python hands over when gpushare is installed in a process: the settings of the job's
// runtime, which device it shares, and how much of its doings are logged.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

#include "csrc/binding/torch/torch_device.h"
#include "csrc/client/config.h"

namespace gpushare::binding {

struct InstallOptions {
  client::ClientConfig config;
  std::string log_level;
  int cuda_index = -1;  // the driver's number of the device; below 0: the CPU
  CudaOptions cuda;
};

// The keywords of install() in python/gpushare/_C.pyi. Their defaults are here and there the same.
// pre: GIL held. Throws TypeError.
InstallOptions read_install_options(const pybind11::kwargs& given);

}  // namespace gpushare::binding
