#include "csrc/daemon/jobs/registration.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "csrc/ipc/shared_memory.h"
#include "csrc/wire/lease_page.h"

namespace gpushare::daemon {
namespace {

// The daemon's and the job's view of one page.
class RegistrationPair : public ::testing::Test {
 protected:
  explicit RegistrationPair(Term held = Term{0})
      : daemon_(*Registration::create(77, {.job = JobId{3}}, held)) {
    const int fd = ::fcntl(daemon_.page_fd(), F_DUPFD_CLOEXEC, 0);
    memory_ = *ipc::SharedMemory::attach(UniqueFd(fd), Bytes{wire::kPageBytes});
  }
  wire::LeasePage& page() { return *static_cast<wire::LeasePage*>(memory_.data()); }
  // How many messages a look has.
  std::size_t look() { return daemon_.look({}).messages.size(); }

  Registration daemon_;
  ipc::SharedMemory memory_;
};

TEST_F(RegistrationPair, TheJobSeesAValidPage) {
  EXPECT_TRUE(wire::is_valid(page()));
  EXPECT_EQ(page().epoch, 77U);
  EXPECT_EQ(page().job, 3U);
  EXPECT_EQ(wire::load(page()), wire::LeaseWord{});
}

TEST_F(RegistrationPair, GrantStoresItsNumberBeforeTheWord) {
  ASSERT_TRUE(wire::want(page()));
  EXPECT_EQ(look(), 1U);
  EXPECT_TRUE(daemon_.grant(Term{1}, 9, seconds(5)));
  EXPECT_EQ(wire::load(page()), wire::LeaseWord(Term{1}, wire::LeaseState::kOpenBusy, false));
  EXPECT_EQ(page().grant_n.load(), 9U);
  EXPECT_EQ(page().granted_ns.load(), seconds(5).value());
  EXPECT_EQ(look(), 0U);
}

TEST_F(RegistrationPair, AGrantThatIsTooLateIsSeenAsClosed) {
  ASSERT_TRUE(wire::want(page()));
  EXPECT_EQ(look(), 1U);
  ASSERT_TRUE(wire::give_up(page()));
  EXPECT_FALSE(daemon_.grant(Term{1}, 0, seconds(5)));
  const PageNews news = daemon_.look({});
  ASSERT_EQ(news.messages.size(), 1U);
  EXPECT_EQ(std::get<wire::Closed>(news.messages[0]).term, Term{1});
}

TEST_F(RegistrationPair, OneWakeUpIsTakenAtATime) {
  const std::uint64_t one = 1;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(::write(daemon_.event_fd(), &one, sizeof(one)), 8);
  }
  daemon_.drain_event();
  std::uint64_t left = 0;
  EXPECT_EQ(::read(daemon_.event_fd(), &left, sizeof(left)), -1);
  daemon_.drain_event();  // nothing there: no wait
}

TEST_F(RegistrationPair, NegativeTotalsOfAPeerAreNothing) {
  page().spilled_total_bytes.store(-5);
  page().outside_bytes.store(6);
  EXPECT_EQ(daemon_.totals().spilled, Bytes{0});
  EXPECT_EQ(daemon_.usage().outside, Bytes{6});
}

class HeldRegistration : public RegistrationPair {
 protected:
  HeldRegistration() : RegistrationPair(Term{8}) {}
};

TEST_F(HeldRegistration, BeginsWithTheLeaseOpen) {
  EXPECT_EQ(wire::load(page()), wire::LeaseWord(Term{8}, wire::LeaseState::kOpenBusy, false));
  EXPECT_EQ(look(), 0U);
  EXPECT_EQ(daemon_.ask(Term{8}), wire::AskResult::kAsked);
  EXPECT_FALSE(wire::is_asked_inside(page()));
  EXPECT_EQ(daemon_.ask_inside(Term{8}), wire::AskResult::kAsked);
  EXPECT_TRUE(wire::is_asked_inside(page()));
  EXPECT_EQ(wire::try_end(page()), wire::EndResult::kMustClose);
  wire::finish_close(page());
  EXPECT_EQ(look(), 1U);
}

}  // namespace
}  // namespace gpushare::daemon
