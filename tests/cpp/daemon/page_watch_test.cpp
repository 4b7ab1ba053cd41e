#include "csrc/daemon/jobs/page_watch.h"

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/wire/address.h"
#include "csrc/wire/job_messages.h"
#include "csrc/wire/lease_page.h"
#include "csrc/wire/usage.h"

namespace gpushare::daemon {
namespace {

using Lease = Belief::Lease;
using wire::LeaseState;
using wire::LeaseWord;

struct Row {
  const char* name;
  Belief before;
  LeaseWord word;
  std::vector<std::string> told;  // "closed 5", "wanted", "gave_up"
  Lease after;
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

std::string text_of(const wire::JobMessage& message) {
  if (const auto* closed = std::get_if<wire::Closed>(&message)) {
    return "closed " + std::to_string(closed->term.value);
  }
  if (std::holds_alternative<wire::Wanted>(message)) return "wanted";
  if (std::holds_alternative<wire::GaveUp>(message)) return "gave_up";
  if (const auto* observed = std::get_if<wire::Observed>(&message)) {
    return "observed " + std::to_string(observed->usage.lane.changes);
  }
  return "another message";
}

LeaseWord word(std::uint64_t term, LeaseState state, bool is_asked = false) {
  return {Term{term}, state, is_asked};
}

const Belief kNone4{Lease::kNone, Term{4}};
const Belief kWaiting4{Lease::kWaiting, Term{4}};
const Belief kOpen5{Lease::kOpen, Term{5}};

class PageWatchTable : public ::testing::TestWithParam<Row> {};

TEST_P(PageWatchTable, TellsWhatMustHaveHappened) {
  const Row& row = GetParam();
  wire::Address of;
  of.job = JobId{7};
  wire::Usage usage;
  usage.iterations = 12;
  usage.lane.changes = 3;
  const PageNews news = read_news(row.before, row.word, of, usage);
  EXPECT_EQ(news.breach, "");
  std::vector<std::string> told;
  for (const auto& message : news.messages) {
    told.push_back(text_of(message));
  }
  EXPECT_EQ(told, row.told);
  EXPECT_EQ(news.belief.lease, row.after);
  // A second look at the same word has nothing new.
  EXPECT_TRUE(read_news(news.belief, row.word, of, usage).messages.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Words,
    PageWatchTable,
    ::testing::Values(
        Row{"IdleStaysIdle", kNone4, word(4, LeaseState::kIdle), {}, Lease::kNone},
        Row{"Wants", kNone4, word(4, LeaseState::kWanted), {"wanted"}, Lease::kWaiting},
        Row{"FirstWant", {}, word(0, LeaseState::kWanted), {"wanted"}, Lease::kWaiting},
        Row{"StillWaits", kWaiting4, word(4, LeaseState::kWanted), {}, Lease::kWaiting},
        Row{"GivesUp",
            kWaiting4,
            word(4, LeaseState::kIdle),
            {"observed 3", "gave_up"},
            Lease::kNone},
        Row{"Busy", kOpen5, word(5, LeaseState::kOpenBusy), {}, Lease::kOpen},
        Row{"BusyAndAsked", kOpen5, word(5, LeaseState::kOpenBusy, true), {}, Lease::kOpen},
        Row{"Gap", kOpen5, word(5, LeaseState::kOpenGap), {}, Lease::kOpen},
        Row{"Closing", kOpen5, word(5, LeaseState::kClosing), {}, Lease::kOpen},
        Row{"ClosingAsked", kOpen5, word(5, LeaseState::kClosing, true), {}, Lease::kOpen},
        Row{"Closed", kOpen5, word(5, LeaseState::kIdle), {"closed 5"}, Lease::kNone},
        Row{"ClosedAndWants",
            kOpen5,
            word(5, LeaseState::kWanted),
            {"closed 5", "wanted"},
            Lease::kWaiting},
        // The grant of term 5 found the word no longer kWanted: it has the term before.
        Row{"GrantMissed", kOpen5, word(4, LeaseState::kIdle), {"closed 5"}, Lease::kNone},
        Row{"GrantMissedAndWantsAgain",
            kOpen5,
            word(4, LeaseState::kWanted),
            {"closed 5", "wanted"},
            Lease::kWaiting},
        // Without a lease the term says nothing.
        Row{"StrangeTermWithoutLease",
            kNone4,
            word(99, LeaseState::kWanted),
            {"wanted"},
            Lease::kWaiting}),
    [](const auto& row) { return row.param.name; });

struct Breach {
  const char* name;
  Belief before;
  LeaseWord word;
};

std::ostream& operator<<(std::ostream& out, const Breach& breach) { return out << breach.name; }

class PageWatchBreach : public ::testing::TestWithParam<Breach> {};

TEST_P(PageWatchBreach, IsToldApartAndChangesNothing) {
  const Breach& breach = GetParam();
  const PageNews news = read_news(breach.before, breach.word, {}, {});
  EXPECT_NE(news.breach, "");
  EXPECT_TRUE(news.messages.empty());
  EXPECT_EQ(news.belief, breach.before);
}

INSTANTIATE_TEST_SUITE_P(
    Words,
    PageWatchBreach,
    ::testing::Values(Breach{"NoSuchState5", kNone4, LeaseWord{4U << 4 | 5U}},
                      Breach{"NoSuchState7", kOpen5, LeaseWord{5U << 4 | 7U}},
                      Breach{"AllOnes", kOpen5, LeaseWord{~0ULL}},
                      Breach{"OpenWithoutGrant", kNone4, word(4, LeaseState::kOpenBusy)},
                      Breach{"OpenWhileWaiting", kWaiting4, word(5, LeaseState::kOpenGap)},
                      Breach{"ClosingWithoutLease", kNone4, word(4, LeaseState::kClosing)},
                      Breach{"OpenOfOldTerm", kOpen5, word(4, LeaseState::kOpenBusy)},
                      Breach{"OpenOfLaterTerm", kOpen5, word(6, LeaseState::kOpenBusy)},
                      Breach{"ClosingOfLaterTerm", kOpen5, word(6, LeaseState::kClosing)}),
    [](const auto& row) { return row.param.name; });

TEST(PageWatch, MessagesCarryAddressAndUsage) {
  wire::Address of;
  of.job = JobId{7};
  of.gang = "g";
  wire::Usage usage;
  usage.iterations = 12;
  const PageNews news = read_news(kOpen5, word(5, LeaseState::kWanted), of, usage);
  ASSERT_EQ(news.messages.size(), 2U);
  EXPECT_EQ(std::get<wire::Closed>(news.messages[0]), (wire::Closed{of, Term{5}, usage}));
  EXPECT_EQ(std::get<wire::Wanted>(news.messages[1]), (wire::Wanted{of, usage}));
}

}  // namespace
}  // namespace gpushare::daemon
