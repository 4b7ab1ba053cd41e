#include "csrc/client/link/carry_over.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "csrc/wire/lease_page.h"

namespace gpushare::client {
namespace {

using wire::LeaseState;
using wire::LeaseWord;

constexpr Term kTerm{5};

void set(wire::LeasePage& page, LeaseState state, bool is_asked = false) {
  page.word.store(LeaseWord(kTerm, state, is_asked).bits());
}

struct Pages {
  wire::LeasePage from{};
  wire::LeasePage to{};

  CarryOver carry(LeaseState old_state, LeaseState fresh_state, bool is_asked = false) {
    set(from, old_state);
    set(to, fresh_state, is_asked);
    return carry_over(from, to);
  }
  [[nodiscard]] LeaseState state() const { return wire::load(to).state(); }
};

TEST(CarryOver, ABusyLeaseStaysOpenAndItsEndIsLedToTheLock) {
  Pages pages;
  EXPECT_EQ(pages.carry(LeaseState::kOpenBusy, LeaseState::kOpenBusy), CarryOver::kNothing);
  EXPECT_EQ(pages.state(), LeaseState::kOpenBusy);
  // What the main thread does on the page it still sees.
  EXPECT_EQ(wire::try_begin(pages.from), wire::BeginResult::kEntered);
  EXPECT_EQ(wire::try_end(pages.from), wire::EndResult::kMustClose);
}

TEST(CarryOver, AGapStaysAGapAndItsBeginIsLedToTheLock) {
  Pages pages;
  EXPECT_EQ(pages.carry(LeaseState::kOpenGap, LeaseState::kOpenBusy), CarryOver::kNothing);
  EXPECT_EQ(pages.state(), LeaseState::kOpenGap);
  EXPECT_EQ(wire::try_begin(pages.from), wire::BeginResult::kMustWait);
}

TEST(CarryOver, AGapThatIsAskedForAlreadyCloses) {
  Pages pages;
  EXPECT_EQ(pages.carry(LeaseState::kOpenGap, LeaseState::kOpenBusy, true), CarryOver::kMustClose);
  EXPECT_EQ(pages.state(), LeaseState::kClosing);
}

TEST(CarryOver, AWaiterWaitsAgain) {
  Pages pages;
  EXPECT_EQ(pages.carry(LeaseState::kWanted, LeaseState::kIdle), CarryOver::kRing);
  EXPECT_EQ(pages.state(), LeaseState::kWanted);
}

TEST(CarryOver, AnIdleJobStaysIdleSilently) {
  Pages pages;
  EXPECT_EQ(pages.carry(LeaseState::kIdle, LeaseState::kIdle), CarryOver::kNothing);
  EXPECT_EQ(pages.state(), LeaseState::kIdle);
}

TEST(CarryOver, ALeaseClosedMeanwhileIsClosedOnTheNewPage) {
  Pages pages;
  EXPECT_EQ(pages.carry(LeaseState::kIdle, LeaseState::kOpenBusy), CarryOver::kRing);
  EXPECT_EQ(pages.state(), LeaseState::kIdle);
}

TEST(CarryOver, ALeaseClosedMeanwhileAndWantedAgainIsBoth) {
  Pages pages;
  EXPECT_EQ(pages.carry(LeaseState::kWanted, LeaseState::kOpenBusy), CarryOver::kRing);
  EXPECT_EQ(pages.state(), LeaseState::kWanted);
}

TEST(CarryOver, ABoundaryThatTheOldOneAskedForCloses) {
  Pages pages;
  EXPECT_EQ(pages.carry(LeaseState::kClosing, LeaseState::kOpenBusy), CarryOver::kMustClose);
  EXPECT_EQ(pages.state(), LeaseState::kClosing);
}

TEST(CarryOver, ALeaseThatTheNewOneDoesNotKnowIsNotInvented) {
  Pages pages;
  EXPECT_EQ(pages.carry(LeaseState::kOpenBusy, LeaseState::kIdle), CarryOver::kNothing);
  EXPECT_EQ(pages.state(), LeaseState::kIdle);
}

// The main thread iterates on the old page without a lock while the pages are changed. Whatever it
// was doing, both agree afterwards: busy there means busy here, gap there means gap here, and its
// next step on the old page fails or asks for the lock.
TEST(CarryOver, AgreesWithAMainThreadThatIteratesMeanwhile) {
  for (int round = 0; round < 300; ++round) {
    Pages pages;
    set(pages.from, LeaseState::kOpenGap);
    set(pages.to, LeaseState::kOpenBusy);
    std::atomic<bool> has_started{false};
    bool is_in_iteration = false;
    std::thread main([&] {
      while (true) {
        has_started.store(true);
        if (wire::try_begin(pages.from) != wire::BeginResult::kEntered) break;
        is_in_iteration = true;
        if (wire::try_end(pages.from) != wire::EndResult::kKept) break;
        is_in_iteration = false;
      }
    });
    while (!has_started.load())
      std::this_thread::yield();
    EXPECT_EQ(carry_over(pages.from, pages.to), CarryOver::kNothing);
    main.join();
    EXPECT_EQ(pages.state(), is_in_iteration ? LeaseState::kOpenBusy : LeaseState::kOpenGap);
  }
}

}  // namespace
}  // namespace gpushare::client
