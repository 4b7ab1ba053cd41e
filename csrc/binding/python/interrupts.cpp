// Notices signals while C++ waits. Python's own handlers run on the main thread only, and only when
// that thread runs Python code; a wait in C++ would keep Ctrl-C from them.
//
// There are two ways. A wait that may run handlers calls is_interrupted() now and then. A wait in
// the gate must first know that a signal has come: a handler may use memory that is spilled. For
// that SignalWatch puts a pipe of its own in place of the program's wake-up descriptor. Python
// writes the number of each signal there, and the watch hands it on to the program's descriptor.
//
// What may go wrong: no pipe can be made, or Python runs its main thread elsewhere. Then signals
// are not seen here, and the wait is told that one may have come.
#include "csrc/binding/python/interrupts.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>

#include <pybind11/pybind11.h>

#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace py = pybind11;

namespace gpushare::binding {
namespace {

struct Pipe {
  pid_t owner = 0;
  int out = -1;
  int in = -1;
};

// The process's pipe, made at the first use. A forked child makes its own: its signals are not its
// parent's.
const Pipe& wakeup_pipe() {
  static Pipe pipe;
  if (pipe.owner == ::getpid() && pipe.in >= 0) return pipe;
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    log::debug("{}", errno_status("make a pipe for signals").message());
  }
  pipe = {.owner = ::getpid(),
          .out = off_standard_streams(ends[0]),
          .in = off_standard_streams(ends[1])};
  return pipe;
}

// Calls the C function of the module _signal: no Python code runs in it, and so no handler. Returns
// the descriptor that was set before. Whether Python warned where that was full cannot be asked,
// and event loops want no warning.
int set_wakeup_fd(int fd) {
  static const py::handle function =
      py::object(py::module_::import("_signal").attr("set_wakeup_fd")).release();
  return function(fd, py::arg("warn_on_full_buffer") = false).cast<int>();
}

}  // namespace

SignalWatch::SignalWatch() : is_main_(::gettid() == ::getpid()) { start(); }

// A watch inside another one finds the pipe set already. It changes nothing, and puts nothing back
// at its end.
void SignalWatch::start() {
  if (!is_main_ || wakeup_pipe().in < 0) return;
  try {
    const int before = set_wakeup_fd(wakeup_pipe().in);
    if (before != wakeup_pipe().in) {
      users_fd_ = before;
    } else if (!is_watching_) {
      is_inner_ = true;
    }
    is_watching_ = true;
  } catch (const py::error_already_set& error) {
    // Python was started on another thread.
    log::debug("signals that come in the gate are not seen: {}", error.what());
  }
}

// The program's own descriptor is back from here on. What had come until now is handed on to it.
SignalWatch::~SignalWatch() {
  if (!is_watching_ || is_inner_) return;
  const py::error_scope pending;  // the call below must not see it
  try {
    set_wakeup_fd(users_fd_);
  } catch (const py::error_already_set& error) {
    log::error("the program's wake-up descriptor for signals is lost: {}", error.what());
  }
  static_cast<void>(has_come());
}

// Reads all bytes in the pipe, one for each signal, and hands them on to the program's own
// descriptor.
bool SignalWatch::has_come() {
  if (!is_watching_) return is_main_;
  bool has_come = false;
  std::array<char, 64> numbers{};
  for (;;) {
    const ssize_t count = ::read(wakeup_pipe().out, numbers.data(), numbers.size());
    if (count <= 0) return has_come;
    has_come = true;
    if (users_fd_ < 0) continue;
    if (::write(users_fd_, numbers.data(), static_cast<std::size_t>(count)) < 0) {
      log::debug("{}", errno_status("tell the program's wake-up descriptor").message());
    }
  }
}

// Looks without reading: the bytes belong to has_come().
bool has_signal() {
  if (wakeup_pipe().out < 0) return true;
  pollfd waiting{.fd = wakeup_pipe().out, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 0) != 0;
}

// PyErr_CheckSignals() runs handlers on the main thread alone, so other threads need not take the
// GIL.
bool is_interrupted() {
  if (::gettid() != ::getpid() || Py_IsInitialized() == 0) return false;
  const py::gil_scoped_acquire gil;
  return PyErr_CheckSignals() != 0;
}

void throw_pending_error() {
  const py::gil_scoped_acquire gil;
  throw py::error_already_set();
}

}  // namespace gpushare::binding
