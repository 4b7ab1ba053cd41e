// The gate as Python's threads see it: waits in C++ without the GIL, in slices short enough that
// Ctrl-C is answered within 100 ms.
#pragma once

#include "csrc/base/units.h"
#include "csrc/client/runtime.h"

namespace gpushare::binding {

// true: inside an iteration. false: `timeout` has passed, the place in the queue is kept.
// A pending signal whose handler raises gives the place up and throws its exception.
// pre: GIL held.
bool wait_in_gate(client::Runtime& runtime, Nanos timeout);

// Stops here until there is a lease again, if this one is wanted back inside the iteration. As
// above, but the place is given up only where no stream is captured; the exception comes then.
// pre: GIL held.
void wait_at_safepoint(client::Runtime& runtime, client::Safepoint where);

}  // namespace gpushare::binding
