#include "csrc/client/link/carry_over.h"

namespace gpushare::client {
namespace {

// The lease was closed while no coordinator was there, or `to` never had it.
CarryOver carry_closed(bool is_wanted, wire::LeasePage& to) {
  const bool was_open = wire::start_close(to);
  if (was_open) wire::finish_close(to);
  const bool has_wanted = is_wanted && wire::want(to);
  return was_open || has_wanted ? CarryOver::kRing : CarryOver::kNothing;
}

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
        // A boundary that the old coordinator asked for, or its taking in the gap.
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
