// Python objects and errors for code that calls into the program: its model, its optimizers.
//
// Two things can happen in such a call that pybind11's handles do not expect. A daemon thread that
// wants the GIL while the interpreter ends is unwound by pthread_exit, through our frames and
// without the GIL; a destructor must not let go of a Python object then. And a signal's handler may
// raise, Ctrl-C first of all; that error is the program's and must reach it.
//
// pre of all functions here: GIL held.
#pragma once

#include <exception>
#include <utility>

#include <pybind11/pybind11.h>

namespace gpushare::binding {

// Owns a Python object, or nothing. Keeps the object for good where the interpreter has begun to
// end.
class Ref {
 public:
  Ref() = default;
  static Ref steal(PyObject* object) { return Ref(object); }
  static Ref borrow(PyObject* object) { return Ref(Py_XNewRef(object)); }
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr && Py_IsInitialized() != 0) Py_DECREF(object_);
  }

  [[nodiscard]] PyObject* get() const { return object_; }
  [[nodiscard]] PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit Ref(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

// function(arguments...). throws: what it raises.
template <typename... Arguments>
Ref call(PyObject* function, Arguments*... arguments) {
  Ref result = Ref::steal(PyObject_CallFunctionObjArgs(function, arguments..., nullptr));
  if (!result) throw pybind11::error_already_set();
  return result;
}

// object.NAME, or nothing if reading that raises an Exception. throws: any other BaseException.
Ref attribute_or_nothing(PyObject* object, PyObject* name);

// Runs the body. What it throws becomes the pending Python error, and the result is false.
template <typename Body>
bool run_guarded(Body body) {
  // No `catch (...)`: the unwinding of a thread that ends has to pass.
  try {
    body();
    return true;
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (const pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return false;
}

// An error that is set aside. Of two errors the later one is raised, as in an `except` block.
class SavedError {
 public:
  // pre: an error is pending.
  SavedError() { PyErr_Fetch(&type_, &value_, &trace_); }
  // Raises it again. If another one is pending by now, it becomes that one's context.
  void restore();

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* trace_ = nullptr;
};

// Runs the body while an error is on its way out of the program's code.
template <typename Body>
void while_raising(Body body) {
  SavedError error;
  static_cast<void>(run_guarded(body));
  error.restore();
}

}  // namespace gpushare::binding
