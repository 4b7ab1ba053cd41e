// Questions about torch's state, asked in every iteration. They are answered from torch's C++ where
// that has the answer. Where only Python has it, a dict is read: no code of the program runs, and
// nothing is imported that the program has not imported.
#include "csrc/binding/watch/watch_torch.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/python_variable.h>

#include "csrc/binding/python/python_ref.h"

namespace gpushare::binding {
namespace {

constexpr int kOutsideBackward = -1;

// The dict of torch.compiler, which lives as long as the interpreter.
PyObject* compiler_names() {
  static PyObject* names = nullptr;
  if (names != nullptr) return names;
  const Ref module = Ref::steal(PyImport_ImportModule("torch.compiler"));
  if (!module) throw py::error_already_set();
  names = Py_NewRef(PyModule_GetDict(module.get()));
  return names;
}

// torch's record of process groups, or null: torch.distributed is not imported.
PyObject* loaded_distributed() {
  static PyObject* const name = PyUnicode_InternFromString("torch.distributed.distributed_c10d");
  return PyDict_GetItemWithError(PyImport_GetModuleDict(), name);
}

}  // namespace

// Of this thread: the engine gives each backward a number on the threads that run it.
bool is_in_backward() { return torch::autograd::get_current_graph_task_id() != kOutsideBackward; }

bool is_grad_enabled() { return at::GradMode::is_enabled(); }

// torch.compile traces the model by running it. Boundaries there would belong to no iteration.
bool is_compiling() {
  static PyObject* const name = PyUnicode_InternFromString("_is_compiling_flag");
  return PyDict_GetItemWithError(compiler_names(), name) == Py_True;
}

// Not THPVariable_Check: for what is no tensor that reads the object's own __class__.
bool requires_grad(PyObject* value) {
  auto* const tensor_type = reinterpret_cast<PyTypeObject*>(THPVariableClass);
  if (tensor_type == nullptr || PyType_IsSubtype(Py_TYPE(value), tensor_type) == 0) return false;
  return THPVariable_Unpack(value).requires_grad();
}

// Looks at the value and at the parts of one tuple, list or dict, no deeper. The containers are
// read by CPython's own functions, so that a subclass with odd methods of its own is harmless.
bool may_be_differentiated(PyObject* value) {
  if (requires_grad(value)) return true;
  if (PyTuple_Check(value) != 0) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
      if (requires_grad(PyTuple_GET_ITEM(value, i))) return true;
    }
  } else if (PyList_Check(value) != 0) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); ++i) {
      if (requires_grad(PyList_GET_ITEM(value, i))) return true;
    }
  } else if (PyDict_Check(value) != 0) {
    Py_ssize_t position = 0;
    PyObject* part = nullptr;
    while (PyDict_Next(value, &position, nullptr, &part) != 0) {
      if (requires_grad(part)) return true;
    }
  }
  return false;
}

// torch keeps the default process group in a record that stays the same object. If torch's own
// names have changed, the answer is yes, and Python decides.
bool may_be_distributed() {
  static PyObject* const world_name = PyUnicode_InternFromString("_world");
  static PyObject* const group_name = PyUnicode_InternFromString("_default_pg");
  static PyObject* world = nullptr;
  if (world == nullptr) {
    PyObject* const module = loaded_distributed();
    if (module == nullptr) return false;
    world = attribute_or_nothing(module, world_name).release();
    if (world == nullptr) return true;  // half imported, or another torch
  }
  const Ref group = attribute_or_nothing(world, group_name);
  return group.get() != Py_None;
}

}  // namespace gpushare::binding
