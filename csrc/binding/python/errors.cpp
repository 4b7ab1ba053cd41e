// Which Python exception stands for which status. Out of memory is torch's own error, so that
// handlers in users' programs work. A bad argument is ValueError. All else is a class of
// gpushare.errors, and what has no class of its own is GpushareError.
#include "csrc/binding/python/errors.h"

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace gpushare::binding {
namespace {

// The classes are looked up when they are needed, so a process without an error imports none of
// them.
py::object exception_for(StatusCode code) {
  const auto ours = [](const char* name) {
    return py::module_::import("gpushare.errors").attr(name).cast<py::object>();
  };
  switch (code) {
    case StatusCode::kOutOfMemory:
    case StatusCode::kDeadlineExceeded:  // only memory is waited for with a limit of its own
      return py::module_::import("torch").attr("OutOfMemoryError");
    case StatusCode::kInvalidArgument: return py::reinterpret_borrow<py::object>(PyExc_ValueError);
    case StatusCode::kUnavailable: return ours("CoordinatorUnreachable");
    case StatusCode::kCancelled: return ours("LeaseRefused");
    case StatusCode::kProtocol: return ours("ProtocolError");
    case StatusCode::kHostTierFull:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kIo:
    case StatusCode::kOk: break;
  }
  return ours("GpushareError");
}

}  // namespace

void raise(const Status& status) {
  // A signal's handler has raised while C++ waited. Its exception goes on, and not one of ours.
  if (status.code() == StatusCode::kCancelled && PyErr_Occurred() != nullptr) {
    throw py::error_already_set();
  }
  const py::object exception = exception_for(status.code());
  PyErr_SetString(exception.ptr(), status.message().c_str());
  throw py::error_already_set();
}

void raise_if_error(const Status& status) {
  if (!status.ok()) raise(status);
}

}  // namespace gpushare::binding
