// From a look at a lease word to what the coordinator must be told: a pure function.
//
// The coordinator believes something about each lease; the job changes the word meanwhile, and the
// daemon sees only the newest value. What must have happened in between follows from the drawing in
// lease_page.h: a word that is kIdle or kWanted under an open lease has been closed, and so on. A
// value that the drawing cannot reach is the peer's breach: the daemon then drops that peer only.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/units.h"
#include "csrc/wire/address.h"
#include "csrc/wire/job_messages.h"
#include "csrc/wire/lease_page.h"
#include "csrc/wire/usage.h"

namespace gpushare::daemon {

// The coordinator's belief about one job's lease.
struct Belief {
  enum class Lease : std::uint8_t { kNone, kWaiting, kOpen };
  Lease lease = Lease::kNone;
  Term term;  // of the open or last lease
  bool operator==(const Belief&) const = default;
};
const char* name_of(Belief::Lease lease);

struct PageNews {
  std::vector<wire::JobMessage> messages;  // Closed, Wanted, Observed and GaveUp; in this order
  Belief belief;                           // once they are told
  std::string breach;                      // not empty: an impossible word; then no messages
};

// `of` and `usage` go into the messages.
PageNews read_news(const Belief& belief,
                   wire::LeaseWord word,
                   const wire::Address& of,
                   const wire::Usage& usage);

}  // namespace gpushare::daemon
