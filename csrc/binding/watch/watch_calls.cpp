// Each function here reports that a call begins, makes it, and reports how it ended. Between the
// two the program's code runs, which may register another job or close this one. So the watch that
// an event is reported to is looked up for each event.
#include "csrc/binding/watch/watch_calls.h"

#include <memory>

#include "csrc/binding/process/process.h"
#include "csrc/binding/python/module_calls.h"
#include "csrc/binding/watch/watch.h"
#include "csrc/binding/watch/watch_torch.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

using Arguments = PyObject* const*;

// Reports to the watch there is. false: a Python error is pending.
template <typename Event>
bool report(Event event) {
  const std::shared_ptr<Watch> watch = Watch::current();
  return watch == nullptr || run_guarded([&] { event(*watch); });
}

// Reports while an error is on its way out of the call.
template <typename Event>
PyObject* report_failure(Event event) {
  while_raising([&] {
    const std::shared_ptr<Watch> watch = Watch::current();
    if (watch != nullptr) event(*watch);
  });
  return nullptr;
}

// Reports that the call with this result has ended. Returns the result, or null if that fails.
template <typename Event>
PyObject* report_end(PyObject* result, Event event) {
  Ref owned = Ref::steal(result);
  return report(event) ? owned.release() : nullptr;
}

// The functions below are called with an array of arguments (METH_FASTCALL), whose length nobody
// else has checked. false: a TypeError is pending.
bool has_arguments(const char* function, Py_ssize_t num, Py_ssize_t least) {
  if (num >= least) return true;
  PyErr_Format(PyExc_TypeError, "%s: %zd arguments, at least %zd are needed", function, num, least);
  return false;
}

// call_model(module, *args, **kwargs)
PyObject* call_model(PyObject* /*self*/, Arguments args, Py_ssize_t num_args, PyObject* keywords) {
  if (!has_arguments("call_model", num_args, 1)) return nullptr;
  bool is_traced = false;
  if (!run_guarded([&] { is_traced = is_compiling(); })) return nullptr;
  if (is_traced) return make_traced_call(args, num_args, keywords);
  PyObject* result = nullptr;
  if (report([](Watch& watch) { watch.forward_began(); })) {
    result = make_stock_call(args, num_args, keywords);
  }
  if (result == nullptr) return report_failure([](Watch& watch) { watch.forward_failed(); });
  return report_end(
      result, [&](Watch& watch) { watch.forward_ended(args[0], args + 1, num_args - 1, result); });
}

// Whether an optimizer stepped in the code that was compiled: Compiled.has_step.
bool has_step(PyObject* compiled) {
  static PyObject* const name = PyUnicode_InternFromString("has_step");
  return attribute_or_nothing(compiled, name).get() == Py_True;
}

// Steps that were seen so far, so that the caller finds out whether one came in between.
std::uint64_t num_steps() {
  const std::shared_ptr<Watch>& watch = Watch::current();
  return watch == nullptr ? 0 : watch->num_steps();
}

// call_compiled(compiled, function, *args, **kwargs)
PyObject* call_compiled(PyObject* /*self*/,
                        Arguments args,
                        Py_ssize_t num_args,
                        PyObject* keywords) {
  if (!has_arguments("call_compiled", num_args, 2)) return nullptr;
  PyObject* const function = args[1];
  const auto count = static_cast<std::size_t>(num_args - 2);
  const bool is_reported = Watch::current() != nullptr && Watch::current()->is_call_of_model();
  if (!is_reported) return PyObject_Vectorcall(function, args + 2, count, keywords);
  const std::uint64_t steps_before = num_steps();
  PyObject* result = nullptr;
  if (report([](Watch& watch) { watch.forward_began(); })) {
    result = PyObject_Vectorcall(function, args + 2, count, keywords);
  }
  if (result == nullptr) return report_failure([](Watch& watch) { watch.forward_failed(); });
  return report_end(result, [&](Watch& watch) {
    watch.compiled_ended(num_steps() == steps_before && has_step(args[0]));
  });
}

// step_optimizer(step, optimizer, *args, **kwargs)
PyObject* step_optimizer(PyObject* /*self*/,
                         Arguments args,
                         Py_ssize_t num_args,
                         PyObject* keywords) {
  if (!has_arguments("step_optimizer", num_args, 2)) return nullptr;
  PyObject* const step = args[0];
  PyObject* const optimizer = args[1];
  const auto count = static_cast<std::size_t>(num_args - 1);
  bool counts = false;
  const bool is_read =
      report([&](Watch& watch) { counts = !is_compiling() && watch.counts(optimizer); });
  if (!is_read) return nullptr;
  if (!counts) return PyObject_Vectorcall(step, args + 1, count, keywords);
  PyObject* result = nullptr;
  if (report([&](Watch& watch) { watch.step_began(optimizer); })) {
    result = PyObject_Vectorcall(step, args + 1, count, keywords);
  }
  if (result == nullptr) {
    return report_failure([&](Watch& watch) { watch.step_failed(optimizer); });
  }
  return report_end(result, [&](Watch& watch) { watch.step_ended(optimizer); });
}

// A function that guard_backward() has made; `engine` is what it was made of.
PyObject* call_engine(PyObject* engine, Arguments args, Py_ssize_t num_args, PyObject* keywords) {
  PyObject* result =
      PyObject_Vectorcall(engine, args, static_cast<std::size_t>(num_args), keywords);
  if (result != nullptr) return result;
  return report_failure([](Watch& watch) { watch.raised(); });
}

// Whether a safepoint may have something to do. Without the process-wide object only the Python
// function knows.
bool may_be_interrupted() {
  Process* const process = Process::get();
  return process == nullptr || process->runtime().may_be_interrupted();
}

// A function that watch_blocks() has made: call_block(block, *args, **kwargs). At its end there is
// a safepoint, block_ended(args, result), which is only called where somebody may be there to use
// it.
PyObject* call_block(PyObject* block_ended,
                     Arguments args,
                     Py_ssize_t num_args,
                     PyObject* keywords) {
  if (!has_arguments("call_block", num_args, 1)) return nullptr;
  bool is_traced = false;
  if (!run_guarded([&] { is_traced = is_compiling(); })) return nullptr;
  if (is_traced) return make_traced_call(args, num_args, keywords);
  Ref result = Ref::steal(make_stock_call(args, num_args, keywords));
  if (!result || !may_be_interrupted()) return result.release();
  const Ref positional = Ref::steal(PyTuple_New(num_args - 1));
  if (!positional) return nullptr;
  for (Py_ssize_t i = 1; i < num_args; ++i) {
    PyTuple_SET_ITEM(positional.get(), i - 1, Py_NewRef(args[i]));
  }
  const bool is_done = run_guarded([&] { call(block_ended, positional.get(), result.get()); });
  return is_done ? result.release() : nullptr;
}

// None, or null with the pending error.
PyObject* answer(bool is_reported) { return is_reported ? Py_NewRef(Py_None) : nullptr; }

PyObject* scaler_updated(PyObject* /*self*/, PyObject* /*none*/) {
  return answer(report([](Watch& watch) { watch.scaler_updated(); }));
}

PyObject* exception_uncaught(PyObject* /*self*/, PyObject* /*none*/) {
  return answer(report([](Watch& watch) { watch.fail(); }));
}

using FastFunction = PyObject* (*)(PyObject*, Arguments, Py_ssize_t, PyObject*);

// The type that PyMethodDef has for functions of all kinds.
PyCFunction method(FastFunction function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

// `engine` becomes the first parameter of call_engine().
PyObject* guard_backward(PyObject* /*self*/, PyObject* engine) {
  static PyMethodDef definition = {"_engine_run_backward", method(&call_engine),
                                   METH_FASTCALL | METH_KEYWORDS, nullptr};
  return PyCFunction_NewEx(&definition, engine, nullptr);
}

PyObject* watch_blocks(PyObject* /*self*/, PyObject* block_ended) {
  static PyMethodDef definition = {"call_block", method(&call_block), METH_FASTCALL | METH_KEYWORDS,
                                   nullptr};
  return PyCFunction_NewEx(&definition, block_ended, nullptr);
}

// These are no pybind11 functions: they surround each call of a model, and pybind11 would take the
// arguments apart and put them together again.
void define_functions(py::module_& module) {
  static PyMethodDef functions[] = {
      {"call_model", method(&call_model), METH_FASTCALL | METH_KEYWORDS, nullptr},
      {"call_compiled", method(&call_compiled), METH_FASTCALL | METH_KEYWORDS, nullptr},
      {"step_optimizer", method(&step_optimizer), METH_FASTCALL | METH_KEYWORDS, nullptr},
      {"guard_backward", &guard_backward, METH_O, nullptr},
      {"watch_blocks", &watch_blocks, METH_O, nullptr},
      {"scaler_updated", &scaler_updated, METH_NOARGS, nullptr},
      {"exception_uncaught", &exception_uncaught, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  if (PyModule_AddFunctions(module.ptr(), &functions[0]) != 0) throw py::error_already_set();
}

// Without a gate it is the process's own.
std::shared_ptr<Watch> make_watch(const py::object& gate,
                                  bool has_optimizer,
                                  const py::set& captures,
                                  const py::object& mark_state,
                                  const py::object& join) {
  return std::make_shared<Watch>(
      gate.is_none() ? make_process_gate() : make_python_gate(Ref::borrow(gate.ptr())),
      WatchOptions{.has_optimizer = has_optimizer,
                   .captures = Ref::borrow(captures.ptr()),
                   .mark_state = Ref::borrow(mark_state.ptr()),
                   .join = Ref::borrow(join.ptr())});
}

void set_named(Watch& watch, const py::list& optimizers) {
  std::vector<Ref> references;
  for (const py::handle& each : optimizers)
    references.push_back(Ref::borrow(each.ptr()));
  watch.set_named(std::move(references));
}

// A watch that another one has replaced is not current, and is left alone.
void detach(const std::shared_ptr<Watch>& watch) {
  if (Watch::current() == watch) Watch::set_current(nullptr);
}

}  // namespace

void define_watch(py::module_& module) {
  define_functions(module);
  py::class_<Watch, std::shared_ptr<Watch>>(module, "Watch")
      .def(py::init(&make_watch), py::kw_only(), py::arg("gate"), py::arg("has_optimizer"),
           py::arg("captures"), py::arg("mark_state"), py::arg("join"))
      .def("attach", [](const std::shared_ptr<Watch>& watch) { Watch::set_current(watch); })
      .def("detach", &detach)
      .def("set_named", &set_named, py::arg("optimizers"))
      .def("step", &Watch::step)
      .def("begin_iteration", &Watch::begin_iteration)
      .def("end_iteration", &Watch::end_iteration)
      .def("fail", &Watch::fail)
      .def("park", &Watch::park)
      .def_property_readonly("persistent_bytes",
                             [](const Watch& watch) { return watch.persistent().value(); });
}

}  // namespace gpushare::binding
