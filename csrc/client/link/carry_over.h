// Moving a lease from the page of a coordinator that is gone to the page of the next one.
//
// Which problem it solves: the main thread changes the old page's word without a lock (the fast
// path of begin and end), and may do so at any moment while the client thread changes pages. So the
// old word is first frozen, as if the coordinator had asked for the lease. A busy lease gets the
// revoke bit, so that the next end must close. A lease in the gap becomes kClosing, so that the
// next begin must wait. Either way the next step of the main thread on the old page leads it to the
// state lock, and there it finds the new page.
#pragma once

#include "csrc/wire/lease_page.h"

namespace gpushare::client {

enum class CarryOver : std::uint8_t {
  kNothing,    // `to` says what `from` said
  kRing,       // `to` changed in a way the coordinator must look at: write the eventfd
  kMustClose,  // `to` is kClosing: the caller closes
};

// pre: The coordinator of `from` is gone. The coordinator of `to` has made its word kOpenBusy with
// the term that the job holds, or kIdle if it holds none. The caller holds the lock under which
// this job wants, gives up and closes.
CarryOver carry_over(wire::LeasePage& from, wire::LeasePage& to);

}  // namespace gpushare::client
