// Every arrow of the drawing in lease_page.h, and that no other exists.
#include "csrc/wire/lease_page.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "tests/cpp/wire/page_in_state.h"

namespace gpushare::wire {
namespace {

using testing::kAllStates;
using testing::kTerm;
using testing::PageInState;
using testing::word_of;

TEST(LeaseWord, KeepsTermStateAndRevokeBitApart) {
  const LeaseWord word(Term{(std::uint64_t{1} << 60) - 1}, LeaseState::kClosing, true);
  EXPECT_EQ(word.term().value, (std::uint64_t{1} << 60) - 1);
  EXPECT_EQ(word.state(), LeaseState::kClosing);
  EXPECT_TRUE(word.is_asked());
  EXPECT_EQ(LeaseWord().state(), LeaseState::kIdle);
}

TEST(LeasePage, BeginEntersFromTheGapAndIsIdempotent) {
  PageInState gap(word_of(LeaseState::kOpenGap));
  EXPECT_EQ(try_begin(gap.page), BeginResult::kEntered);
  EXPECT_EQ(load(gap.page), word_of(LeaseState::kOpenBusy));
  EXPECT_EQ(try_begin(gap.page), BeginResult::kEntered);
  EXPECT_EQ(load(gap.page), word_of(LeaseState::kOpenBusy));
}

TEST(LeasePage, AGrantIsGoodForOneIterationEvenIfAsked) {
  PageInState busy(word_of(LeaseState::kOpenBusy, true));
  EXPECT_EQ(try_begin(busy.page), BeginResult::kEntered);
  EXPECT_EQ(load(busy.page), word_of(LeaseState::kOpenBusy, true));
}

TEST(LeasePage, BeginWithoutALeaseSaysWhatToDo) {
  for (const auto& [state, result] : {std::pair{LeaseState::kIdle, BeginResult::kMustWant},
                                      std::pair{LeaseState::kWanted, BeginResult::kMustWait},
                                      std::pair{LeaseState::kClosing, BeginResult::kMustWait}}) {
    PageInState start(word_of(state));
    EXPECT_EQ(try_begin(start.page), result) << name_of(state);
    EXPECT_EQ(load(start.page), word_of(state));
  }
}

TEST(LeasePage, EndKeepsTheLeaseOverTheGap) {
  PageInState busy(word_of(LeaseState::kOpenBusy));
  EXPECT_EQ(try_end(busy.page), EndResult::kKept);
  EXPECT_EQ(load(busy.page), word_of(LeaseState::kOpenGap));
}

TEST(LeasePage, EndClosesWhenAsked) {
  PageInState busy(word_of(LeaseState::kOpenBusy, true));
  EXPECT_EQ(try_end(busy.page), EndResult::kMustClose);
  EXPECT_EQ(load(busy.page), word_of(LeaseState::kClosing));
}

TEST(LeasePage, EndOutsideAnIterationChangesNothing) {
  for (const LeaseState state : kAllStates) {
    if (state == LeaseState::kOpenBusy) continue;
    PageInState start(word_of(state));
    EXPECT_EQ(try_end(start.page), EndResult::kNotOpen) << name_of(state);
    EXPECT_EQ(load(start.page), word_of(state));
  }
}

TEST(LeasePage, WantMovesOnlyFromIdle) {
  for (const LeaseState state : kAllStates) {
    PageInState start(word_of(state));
    const bool is_idle = state == LeaseState::kIdle;
    EXPECT_EQ(want(start.page), is_idle) << name_of(state);
    EXPECT_EQ(load(start.page), word_of(is_idle ? LeaseState::kWanted : state));
  }
}

TEST(LeasePage, GiveUpMovesOnlyFromWanted) {
  for (const LeaseState state : kAllStates) {
    PageInState start(word_of(state));
    const bool is_wanted = state == LeaseState::kWanted;
    EXPECT_EQ(give_up(start.page), is_wanted) << name_of(state);
    EXPECT_EQ(load(start.page), word_of(is_wanted ? LeaseState::kIdle : state));
  }
}

TEST(LeasePage, StartCloseMovesOnlyFromOpenAndClearsTheRevokeBit) {
  for (const LeaseState state : kAllStates) {
    for (const bool is_asked : {false, true}) {
      PageInState start(word_of(state, is_asked));
      const bool is_open = word_of(state).is_open();
      EXPECT_EQ(start_close(start.page), is_open) << name_of(state);
      EXPECT_EQ(load(start.page),
                is_open ? word_of(LeaseState::kClosing) : word_of(state, is_asked));
    }
  }
}

TEST(LeasePage, FinishCloseKeepsTheTerm) {
  for (const bool is_asked : {false, true}) {
    PageInState closing(word_of(LeaseState::kClosing, is_asked));
    finish_close(closing.page);
    EXPECT_EQ(load(closing.page), word_of(LeaseState::kIdle));
  }
}

TEST(LeasePage, FinishCloseLeavesAnOpenLeaseAlone) {
  for (const LeaseState state : kAllStates) {
    if (state == LeaseState::kClosing) continue;
    PageInState start(word_of(state));
    finish_close(start.page);
    EXPECT_EQ(load(start.page), word_of(state));
  }
}

TEST(LeasePage, GrantMovesOnlyFromWantedAndChangesWhatTheFutexCompares) {
  for (const LeaseState state : kAllStates) {
    PageInState start(word_of(state));
    const bool is_wanted = state == LeaseState::kWanted;
    EXPECT_EQ(grant(start.page, Term{8}), is_wanted) << name_of(state);
    const LeaseWord granted(Term{8}, LeaseState::kOpenBusy, false);
    EXPECT_EQ(load(start.page), is_wanted ? granted : word_of(state));
    if (is_wanted) {
      EXPECT_NE(load(start.page).low(), word_of(state).low());
    }
  }
}

TEST(LeasePage, TwoWaitsInARowDifferInWhatTheFutexCompares) {
  PageInState start(word_of(LeaseState::kWanted));
  const std::uint32_t before = load(start.page).low();
  ASSERT_TRUE(grant(start.page, Term{8}));
  ASSERT_TRUE(start_close(start.page));
  finish_close(start.page);
  ASSERT_TRUE(want(start.page));
  EXPECT_NE(load(start.page).low(), before);
}

TEST(LeasePage, AskSetsTheRevokeBitInsideAnIteration) {
  PageInState busy(word_of(LeaseState::kOpenBusy));
  EXPECT_EQ(ask(busy.page, kTerm), AskResult::kAsked);
  EXPECT_EQ(load(busy.page), word_of(LeaseState::kOpenBusy, true));
  EXPECT_EQ(ask(busy.page, kTerm), AskResult::kAsked);
}

TEST(LeasePage, AskInsideNamesTheTerm) {
  PageInState busy(word_of(LeaseState::kOpenBusy));
  EXPECT_EQ(ask(busy.page, kTerm), AskResult::kAsked);
  EXPECT_FALSE(is_asked_inside(busy.page));
  EXPECT_EQ(ask_inside(busy.page, kTerm), AskResult::kAsked);
  EXPECT_EQ(load(busy.page), word_of(LeaseState::kOpenBusy, true));
  EXPECT_TRUE(is_asked_inside(busy.page));
  // The next lease was not asked for.
  ASSERT_TRUE(start_close(busy.page));
  EXPECT_FALSE(is_asked_inside(busy.page));
  finish_close(busy.page);
  ASSERT_TRUE(want(busy.page));
  ASSERT_TRUE(grant(busy.page, Term{8}));
  EXPECT_FALSE(is_asked_inside(busy.page));
}

TEST(LeasePage, AskTakesTheLeaseInTheGap) {
  PageInState gap(word_of(LeaseState::kOpenGap));
  EXPECT_EQ(ask(gap.page, kTerm), AskResult::kTakenInGap);
  EXPECT_EQ(load(gap.page).state(), LeaseState::kClosing);
  EXPECT_TRUE(load(gap.page).is_asked());
  EXPECT_EQ(ask(gap.page, kTerm), AskResult::kStale);
}

TEST(LeasePage, AskForAnotherTermIsStale) {
  for (const LeaseState state : kAllStates) {
    for (const Term term : {Term{6}, Term{8}}) {
      PageInState start(word_of(state));
      EXPECT_EQ(ask(start.page, term), AskResult::kStale) << name_of(state);
      EXPECT_EQ(load(start.page), word_of(state));
    }
  }
}

TEST(LeasePage, StatesThatDoNotExistAreNeitherOpenNorMoved) {
  for (std::uint64_t state = 5; state < 8; ++state) {
    const LeaseWord word(kTerm.value << 4 | state);
    PageInState start(word);
    EXPECT_EQ(try_begin(start.page), BeginResult::kMustWait);
    EXPECT_EQ(try_end(start.page), EndResult::kNotOpen);
    EXPECT_EQ(ask(start.page, kTerm), AskResult::kStale);
    EXPECT_FALSE(want(start.page) || give_up(start.page) || start_close(start.page));
    EXPECT_FALSE(grant(start.page, Term{8}));
    finish_close(start.page);
    EXPECT_EQ(load(start.page), word);
    EXPECT_STREQ(name_of(word.state()), "unknown");
  }
}

TEST(LeasePage, ARankIsAtItsStopWhenItHasMadeTheAgreedSteps) {
  PageInState start(word_of(LeaseState::kOpenBusy));
  start.page.gang_steps = 20;
  EXPECT_FALSE(is_at_stop(start.page)) << "nothing was agreed";
  start.page.stop_at = 21;
  EXPECT_FALSE(is_at_stop(start.page));
  start.page.gang_steps = 21;
  EXPECT_TRUE(is_at_stop(start.page));
  EXPECT_EQ(read_usage(start.page).gang_steps, 21U);
}

TEST(LeaseState, HasTheNamesOfTheDrawing) {
  EXPECT_STREQ(name_of(LeaseState::kIdle), "kIdle");
  EXPECT_STREQ(name_of(LeaseState::kWanted), "kWanted");
  EXPECT_STREQ(name_of(LeaseState::kOpenBusy), "kOpenBusy");
  EXPECT_STREQ(name_of(LeaseState::kOpenGap), "kOpenGap");
  EXPECT_STREQ(name_of(LeaseState::kClosing), "kClosing");
}

}  // namespace
}  // namespace gpushare::wire
