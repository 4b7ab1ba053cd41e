// Decides from one value of the lease word what must have happened since the last look.
//
// The order of messages is the order of the events. A lease that was open and is not any more was
// closed: Closed comes first. Then a word that is kWanted means Wanted. A job that waited and is
// idle gave up; what it said on its page before is told first. A word that is open or closing under
// the lease that the coordinator gave is no news.
//
// What may go wrong: a word that the drawing of lease_page.h cannot reach, such as a lease that was
// never granted. That is the job's breach, and the caller ends its connection.
#include "csrc/daemon/jobs/page_watch.h"

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/wire/address.h"
#include "csrc/wire/job_messages.h"
#include "csrc/wire/lease_page.h"
#include "csrc/wire/usage.h"

namespace gpushare::daemon {
namespace {

using Lease = Belief::Lease;
using wire::LeaseState;

constexpr auto kLastState = static_cast<std::uint8_t>(LeaseState::kClosing);

// Whether the word can have come about. A lease is open or closing only if the coordinator gave it.
// The term of a word without a lease says nothing, since the next grant replaces it.
bool is_possible(const Belief& belief, wire::LeaseWord word) {
  if (static_cast<std::uint8_t>(word.state()) > kLastState) return false;
  const bool is_under_lease = word.is_open() || word.state() == LeaseState::kClosing;
  if (!is_under_lease) return true;
  return belief.lease == Lease::kOpen && word.term() == belief.term;
}

}  // namespace

const char* name_of(Belief::Lease lease) {
  switch (lease) {
    case Lease::kNone: return "kNone";
    case Lease::kWaiting: return "kWaiting";
    case Lease::kOpen: return "kOpen";
  }
  return "unknown";
}

// Pure: the same word after the same belief gives the same news. The caller keeps the belief that
// comes back, so each event is told once.
PageNews read_news(const Belief& belief,
                   wire::LeaseWord word,
                   const wire::Address& of,
                   const wire::Usage& usage) {
  PageNews news;
  news.belief = belief;
  if (!is_possible(belief, word)) {
    news.breach = fmt::format("lease word {:#x} is impossible after {} term {}", word.bits(),
                              name_of(belief.lease), belief.term.value);
    return news;
  }
  const LeaseState state = word.state();
  if (state != LeaseState::kIdle && state != LeaseState::kWanted) return news;  // open or closing
  if (belief.lease == Lease::kOpen) {
    news.messages.emplace_back(wire::Closed{of, belief.term, usage});
    news.belief.lease = Lease::kNone;
  }
  if (state == LeaseState::kWanted && belief.lease != Lease::kWaiting) {
    news.messages.emplace_back(wire::Wanted{of, usage});
    news.belief.lease = Lease::kWaiting;
  }
  if (state == LeaseState::kIdle && belief.lease == Lease::kWaiting) {
    // Told first: what the job changed before it gave up, such as its lane.
    news.messages.emplace_back(wire::Observed{of, usage});
    news.messages.emplace_back(wire::GaveUp{of});
    news.belief.lease = Lease::kNone;
  }
  return news;
}

}  // namespace gpushare::daemon
