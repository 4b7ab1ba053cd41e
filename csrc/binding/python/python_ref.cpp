// Which errors of the program's code are ours to drop. An Exception in an attribute that we only
// look at is dropped, since without us nobody would have read it. Any other BaseException, such as
// the KeyboardInterrupt of Ctrl-C, goes on to the program.
#include "csrc/binding/python/python_ref.h"

namespace py = pybind11;

namespace gpushare::binding {

// An exception that is no Exception, as KeyboardInterrupt, goes on.
Ref attribute_or_nothing(PyObject* object, PyObject* name) {
  Ref value = Ref::steal(PyObject_GetAttr(object, name));
  if (value) return value;
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw py::error_already_set();
  PyErr_Clear();
  return {};
}

// As an `except` block does it: the later error is raised, and the earlier one is its context.
void SavedError::restore() {
  if (PyErr_Occurred() != nullptr) {
    SavedError later;
    PyErr_NormalizeException(&type_, &value_, &trace_);
    PyErr_NormalizeException(&later.type_, &later.value_, &later.trace_);
    if (trace_ != nullptr) PyException_SetTraceback(value_, trace_);
    if (later.value_ != value_) PyException_SetContext(later.value_, Py_NewRef(value_));
    Py_CLEAR(type_);
    Py_CLEAR(value_);
    Py_CLEAR(trace_);
    std::swap(type_, later.type_);
    std::swap(value_, later.value_);
    std::swap(trace_, later.trace_);
  }
  PyErr_Restore(type_, value_, trace_);
  type_ = value_ = trace_ = nullptr;
}

}  // namespace gpushare::binding
