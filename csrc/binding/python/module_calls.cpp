// A descriptor in the class torch.nn.Module, by which our function runs around the calls of watched
// modules. No function of torch is replaced, and modules that nobody watches pay for one lookup in
// a call.
//
// It is written with Python's C interface and not with pybind11, since every call of every module
// passes through get(). What may go wrong: torch changes the name of the attribute, or no longer
// asks for it. The tests of each supported version of torch would show that.
#include "csrc/binding/python/module_calls.h"

#include <cstring>
#include <memory>
#include <unordered_map>

#include "csrc/binding/python/python_ref.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

// torch.nn.Module.__call__ asks each module for this attribute, which Module.compile sets, and
// calls what it finds there. Our descriptor in the class answers for it. Read in each call of each
// module, which is why it is not Python.
//
// Only that method of torch's finds our function there. To all else the attribute is what it would
// be without us, above all to torch.compile: it reads the attribute when it traces a call, and
// could neither trace a C function nor forget about it in its guards.
constexpr const char* kAttribute = "_compiled_call_impl";

using Functions = std::unordered_map<PyObject*, py::object>;

struct ModuleCalls {
  PyObject_HEAD Functions*
      functions;     // of modules that are alive: who watches one forgets it when it dies
  PyObject* reader;  // the code of torch's method
};

Functions& functions_of(PyObject* self) { return *reinterpret_cast<ModuleCalls*>(self)->functions; }

// Whether torch's method runs right now, so that it is what reads the attribute.
bool is_read_by_call(PyObject* self) {
  PyFrameObject* const frame = PyEval_GetFrame();
  if (frame == nullptr) return false;
  PyCodeObject* const code = PyFrame_GetCode(frame);
  const bool is_reader =
      reinterpret_cast<PyObject*>(code) == reinterpret_cast<ModuleCalls*>(self)->reader;
  Py_DECREF(code);
  return is_reader;
}

// Its __dict__, or null with an error set.
py::object dict_of(PyObject* module) {
  return py::reinterpret_steal<py::object>(PyObject_GenericGetDict(module, nullptr));
}

// What torch.compile(model) returns stands for the model, which may run without being called.
PyObject* module_inside(PyObject* module) {
  if (std::strcmp(Py_TYPE(module)->tp_name, "OptimizedModule") != 0) return module;
  const py::object dict = dict_of(module);
  PyObject* children = dict ? PyDict_GetItemString(dict.ptr(), "_modules") : nullptr;
  PyObject* inside = children != nullptr ? PyDict_GetItemString(children, "_orig_mod") : nullptr;
  return inside != nullptr ? inside : module;
}

// What Module.compile has set, or None: the value that the attribute has without us.
PyObject* own_call(PyObject* module) {
  static PyObject* const name = PyUnicode_InternFromString(kAttribute);
  const py::object dict = dict_of(module);
  if (!dict) return nullptr;
  PyObject* call = PyDict_GetItemWithError(dict.ptr(), name);
  if (call == nullptr && PyErr_Occurred() != nullptr) return nullptr;
  return Py_NewRef(call != nullptr ? call : Py_None);
}

// The value of the attribute: our function, bound to the module, for torch's method and a watched
// module; for all others what the attribute would be without us.
PyObject* get(PyObject* self, PyObject* module, PyObject* /*type*/) {
  if (module == nullptr) Py_RETURN_NONE;
  const Functions& functions = functions_of(self);
  auto found = functions.find(module);
  if (found == functions.end()) found = functions.find(module_inside(module));
  if (found == functions.end() || !is_read_by_call(self)) return own_call(module);
  return PyMethod_New(found->second.ptr(), module);
}

// Module.compile() sets the attribute. The value goes into the module's own __dict__, as it would
// without a descriptor in the class.
int set(PyObject* /*self*/, PyObject* module, PyObject* value) {
  const py::object dict = dict_of(module);
  if (!dict) return -1;
  if (value != nullptr) return PyDict_SetItemString(dict.ptr(), kAttribute, value);
  if (PyDict_DelItemString(dict.ptr(), kAttribute) == 0) return 0;
  PyErr_SetString(PyExc_AttributeError, kAttribute);
  return -1;
}

// The module is kept by its address and not by a reference, so that it can die. forget() is called
// then.
PyObject* watch(PyObject* self, PyObject* args) {
  PyObject* module = nullptr;
  PyObject* function = nullptr;
  if (PyArg_ParseTuple(args, "OO", &module, &function) == 0) return nullptr;
  functions_of(self)[module] = py::reinterpret_borrow<py::object>(function);
  Py_RETURN_NONE;
}

PyObject* forget(PyObject* self, PyObject* id) {
  void* module = PyLong_AsVoidPtr(id);
  if (module == nullptr && PyErr_Occurred() != nullptr) return nullptr;
  functions_of(self).erase(static_cast<PyObject*>(module));
  Py_RETURN_NONE;
}

// ModuleCalls(reader)
PyObject* make(PyTypeObject* type, PyObject* args, PyObject* /*kwargs*/) {
  PyObject* reader = nullptr;
  if (PyArg_ParseTuple(args, "O!", &PyCode_Type, &reader) == 0) return nullptr;
  auto functions = std::make_unique<Functions>();
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  auto* const calls = reinterpret_cast<ModuleCalls*>(self);
  calls->functions = functions.release();
  calls->reader = Py_NewRef(reader);
  return self;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<ModuleCalls*>(self)->functions;
  Py_XDECREF(reinterpret_cast<ModuleCalls*>(self)->reader);
  type->tp_free(self);
  Py_DECREF(type);
}

template <typename Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

PyObject* make_traced_call(PyObject* const* args, Py_ssize_t num_args, PyObject* keywords) {
  static PyObject* const name = PyUnicode_InternFromString("_call_impl");
  return PyObject_VectorcallMethod(name, args, static_cast<std::size_t>(num_args), keywords);
}

PyObject* make_stock_call(PyObject* const* args, Py_ssize_t num_args, PyObject* keywords) {
  const Ref own = Ref::steal(own_call(args[0]));
  if (!own) return nullptr;
  if (own.get() == Py_None) return make_traced_call(args, num_args, keywords);
  return PyObject_Vectorcall(own.get(), args + 1, static_cast<std::size_t>(num_args - 1), keywords);
}

void define_module_calls(py::module_& module) {
  static PyMethodDef methods[] = {{"watch", &watch, METH_VARARGS, nullptr},
                                  {"forget", &forget, METH_O, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_new, slot(&make)},      {Py_tp_dealloc, slot(&destroy)},
                                {Py_tp_descr_get, slot(&get)}, {Py_tp_descr_set, slot(&set)},
                                {Py_tp_methods, &methods[0]},  {0, nullptr}};
  static PyType_Spec spec = {"gpushare._C.ModuleCalls", sizeof(ModuleCalls), 0, Py_TPFLAGS_DEFAULT,
                             &slots[0]};
  module.add_object("ModuleCalls", py::reinterpret_steal<py::object>(PyType_FromSpec(&spec)));
}

}  // namespace gpushare::binding
