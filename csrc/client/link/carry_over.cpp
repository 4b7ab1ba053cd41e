// Moves the lease from the page of a coordinator that is gone to the page of the next one. The old
// word decides. Closed or wanted: the new word becomes the same. Closing: the new one closes too.
// Open: the old word is frozen with ask(), so that the main thread's next step leads it to the lock
// and to the new page. If the main thread is faster than the freezing, the old word is looked at
// again.
#include "csrc/client/link/carry_over.h"

namespace gpushare::client {
namespace {

// The job has no lease: it was closed while no coordinator was there, or the new coordinator knows
// of none. If the new page has an open word all the same, it is closed at once.
CarryOver carry_closed(bool is_wanted, wire::LeasePage& to) {
  const bool was_open = wire::start_close(to);
  if (was_open) wire::finish_close(to);
  const bool has_wanted = is_wanted && wire::want(to);
  return was_open || has_wanted ? CarryOver::kRing : CarryOver::kNothing;
}

// The job is in the gap. Its new word is busy, so the boundary that has passed is repeated there.
CarryOver carry_gap(wire::LeasePage& to) {
  return wire::try_end(to) == wire::EndResult::kMustClose ? CarryOver::kMustClose
                                                          : CarryOver::kNothing;
}

}  // namespace

CarryOver carry_over(wire::LeasePage& from, wire::LeasePage& to) {
  while (true) {
    const wire::LeaseWord word = wire::load(from);
    switch (word.state()) {
      case wire::LeaseState::kIdle: return carry_closed(false, to);
      case wire::LeaseState::kWanted: return carry_closed(true, to);
      case wire::LeaseState::kClosing:
        // The old coordinator asked for a boundary, or took the lease in the gap.
        return wire::start_close(to) ? CarryOver::kMustClose : CarryOver::kNothing;
      case wire::LeaseState::kOpenBusy:
      case wire::LeaseState::kOpenGap: break;
      default: return CarryOver::kNothing;  // no state of the drawing: leave the new page alone
    }
    switch (wire::ask(from, word.term())) {
      case wire::AskResult::kAsked: return CarryOver::kNothing;
      case wire::AskResult::kTakenInGap: return carry_gap(to);
      case wire::AskResult::kStale: break;  // the main thread was faster: look again
    }
  }
}

}  // namespace gpushare::client
