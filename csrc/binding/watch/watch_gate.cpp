// Two gates. A job's gate goes straight to the runtime, since it is passed in every iteration.
// `gpushare verify` puts a Python object in its place, which moves all memory at each boundary.
#include "csrc/binding/watch/watch_gate.h"

#include <utility>

#include "csrc/binding/process/boundary_kinds.h"
#include "csrc/binding/process/installed.h"
#include "csrc/binding/python/gate.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

class ProcessGate final : public WatchGate {
 public:
  void enter() override { wait_in_gate(installed().runtime()); }
  void leave(wire::BoundaryKind kind, bool is_optimizer_step) override {
    leave_gate(installed().runtime(), kind, is_optimizer_step);
  }
  void close() override {
    client::Runtime& runtime = installed().runtime();
    const py::gil_scoped_release release;
    runtime.close_lease(wire::BoundaryKind::kException);
  }
  std::uint64_t begin_step() override { return wait_for_step(installed().runtime()); }
  [[nodiscard]] Bytes live() override { return installed().device().live(); }
  [[nodiscard]] bool is_asked() override { return installed().runtime().is_asked(); }
};

// The method of this name, bound to its object. Throws what Python has raised. pre: GIL held.
Ref method(const Ref& object, const char* name) {
  Ref method = Ref::steal(PyObject_GetAttrString(object.get(), name));
  if (!method) throw py::error_already_set();
  return method;
}

// -1 is a value as well as a sign of an error, so PyErr_Occurred() decides.
std::int64_t to_int(const Ref& number) {
  const std::int64_t value = PyLong_AsLongLong(number.get());
  if (value == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return value;
}

// Calls the methods of the same names. An exception of the object passes through the call of the
// model to the user's code, as one of the real gate would.
class PythonGate final : public WatchGate {
 public:
  explicit PythonGate(Ref gate) : gate_(std::move(gate)) {}
  void enter() override { call(method(gate_, "enter").get()); }
  void leave(wire::BoundaryKind kind, bool is_optimizer_step) override {
    const std::string_view name = name_of(kind);
    const Ref text =
        Ref::steal(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
    call(method(gate_, "leave").get(), text.get(), is_optimizer_step ? Py_True : Py_False);
  }
  void close() override { call(method(gate_, "close").get()); }
  std::uint64_t begin_step() override {
    return static_cast<std::uint64_t>(to_int(call(method(gate_, "begin_step").get())));
  }
  [[nodiscard]] Bytes live() override {
    return Bytes{to_int(call(method(gate_, "live_bytes").get()))};
  }
  [[nodiscard]] bool is_asked() override { return false; }

 private:
  const Ref gate_;
};

}  // namespace

std::unique_ptr<WatchGate> make_process_gate() { return std::make_unique<ProcessGate>(); }

std::unique_ptr<WatchGate> make_python_gate(Ref gate) {
  return std::make_unique<PythonGate>(std::move(gate));
}

}  // namespace gpushare::binding
