// The process-wide object for functions that need it, or a Python exception.
#pragma once

#include "csrc/binding/process/process.h"
#include "csrc/binding/python/errors.h"

namespace gpushare::binding {

// pre: GIL held. Throws gpushare.errors.GpushareError before install().
inline Process& installed() {
  Process* process = Process::get();
  if (process == nullptr) {
    raise({StatusCode::kFailedPrecondition, "gpushare is not installed in this process"});
  }
  return *process;
}

}  // namespace gpushare::binding
