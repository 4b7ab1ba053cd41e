// A lease page whose word is already somewhere in the drawing, for tests.
#pragma once

#include <array>
#include <atomic>

#include "csrc/wire/lease_page.h"

namespace gpushare::wire::testing {

inline constexpr std::array kAllStates{LeaseState::kIdle, LeaseState::kWanted,
                                       LeaseState::kOpenBusy, LeaseState::kOpenGap,
                                       LeaseState::kClosing};

inline constexpr Term kTerm{7};

inline LeaseWord word_of(LeaseState state, bool is_asked = false) {
  return LeaseWord(kTerm, state, is_asked);
}

struct PageInState {
  explicit PageInState(LeaseWord word) {
    initialise(page, 1, {.job = JobId{1}});
    page.word.store(word.bits(), std::memory_order_relaxed);
  }
  LeasePage page{};
};

}  // namespace gpushare::wire::testing
