// Ctrl-C during a wait that Python does not see: an allocation that waits for room, a register that
// waits for a coordinator that is stopped.
//
// The wait asks is_interrupted() now and then. Once it has said true, a Python error is pending on
// the main thread; the wait ends with StatusCode::kCancelled, and whoever knows how to throw from
// there calls throw_pending_error().
#pragma once

namespace gpushare::binding {

// Runs the handlers of signals that have come; true: one has raised. False on any thread but the
// main one. Takes the GIL.
[[nodiscard]] bool is_interrupted();

// pre: is_interrupted() was true on this thread. Takes the GIL.
[[noreturn]] void throw_pending_error();

}  // namespace gpushare::binding
