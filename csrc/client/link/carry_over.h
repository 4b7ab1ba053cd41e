// Moving a lease from the page of a coordinator that is gone to the page of the next one.
//
// Which problem it solves: the main thread changes the old page's word without a lock (the fast
// path of begin and end), and may do so at any moment while the client thread changes pages. So the
// old word is first frozen with the coordinator's own verb, ask: a busy lease gets the revoke bit
// (the next end then finds kMustClose), one in the gap becomes kClosing (the next begin finds
// kMustWait). Either way the main thread's next step on the old page leads it to the state lock,
// and there it finds the new page.
#pragma once

#include "csrc/wire/lease_page.h"

namespace gpushare::client {

enum class CarryOver : std::uint8_t {
  kNothing,    // `to` says what `from` said
  kRing,       // `to` changed in a way the coordinator must look at: write the eventfd
  kMustClose,  // `to` is kClosing: the caller closes
};

// pre: `from`'s coordinator is gone; `to`'s has made its word (held term, kOpenBusy), or kIdle if
// none was held; the caller holds the lock under which this job wants, gives up and closes.
CarryOver carry_over(wire::LeasePage& from, wire::LeasePage& to);

}  // namespace gpushare::client
