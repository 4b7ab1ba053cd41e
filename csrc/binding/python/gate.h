// The gate as Python's threads see it: waits in C++ without the GIL, in slices short enough that
// Ctrl-C is answered within 100 ms, or where a GPU's memory was spilled once that can be used where
// it was (Runtime::show_memory).
#pragma once

#include <cstdint>

#include "csrc/client/runtime.h"

namespace gpushare::binding {

// Returns inside an iteration. No Python code runs on this thread meanwhile but the handlers of
// signals that come: a handler that raises gives the place in the queue up. A wait of more than
// five seconds is said on stderr. throws: what a handler has raised; what Runtime::begin_iteration
// has refused. pre: GIL held.
void wait_in_gate(client::Runtime& runtime);

// A boundary. The GIL is free while a lease that is asked for is closed: on a GPU that waits for
// all work that is queued, which may need Python. pre: GIL held.
void leave_gate(client::Runtime& runtime, wire::BoundaryKind kind, bool is_optimizer_step);

// Stops here until there is a lease again, if this one is wanted back inside the iteration. As
// above, but the place is given up only where no stream is captured; the exception comes then.
// pre: GIL held.
void wait_at_safepoint(client::Runtime& runtime, client::Safepoint where);

// An optimizer's step begins: waits, without the GIL, for memory that came back too late for the
// iteration's begin. Returns the number of leases so far. pre: GIL held.
std::uint64_t wait_for_step(client::Runtime& runtime);

}  // namespace gpushare::binding
