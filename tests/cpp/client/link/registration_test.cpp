#include "csrc/client/link/registration.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

constexpr Bytes kPage{static_cast<std::int64_t>(wire::kPageBytes)};

UniqueFd eventfd_of_test() { return UniqueFd(::eventfd(0, EFD_CLOEXEC)); }

// The descriptors of a Registered: a page, which a coordinator has filled or not, and an eventfd.
std::vector<UniqueFd> descriptors(bool is_page_filled = true) {
  Result<ipc::SharedMemory> memory = ipc::SharedMemory::create("registration-test", kPage);
  EXPECT_TRUE(memory.has_value());
  if (is_page_filled) {
    wire::initialise(*static_cast<wire::LeasePage*>(memory->data()), 1, {.job = JobId{3}});
  }
  std::vector<UniqueFd> fds;
  fds.emplace_back(::dup(memory->fd()));
  fds.push_back(eventfd_of_test());
  return fds;
}

RegisterOptions with_limit(Bytes limit) {
  RegisterOptions options;
  options.name = "gpt";
  options.settings.memory_limit = limit;
  return options;
}

TEST(Registration, RefusesWhatNoJobCanBe) {
  EXPECT_TRUE(Registration::check({}).ok());
  RegisterOptions options;
  options.settings.weight = 0;
  EXPECT_EQ(Registration::check(options).code(), StatusCode::kInvalidArgument);
  options = {};
  options.settings.share_limit = 1.5;
  EXPECT_EQ(Registration::check(options).code(), StatusCode::kInvalidArgument);
  options = {};
  options.rank = 2;
  options.ranks = 2;
  EXPECT_EQ(Registration::check(options).code(), StatusCode::kInvalidArgument);
  options = {};
  options.gang = std::string(wire::kMaxNameBytes + 1, 'x');
  EXPECT_EQ(Registration::check(options).code(), StatusCode::kInvalidArgument);
}

TEST(Registration, GoesFromWantedToRegisteredAndBack) {
  Registration registration;
  EXPECT_FALSE(registration.is_wanted());
  registration.begin({.name = "gpt"});
  EXPECT_TRUE(registration.is_wanted());
  EXPECT_FALSE(registration.is_registered());
  ASSERT_TRUE(registration.install(descriptors()).has_value());
  EXPECT_FALSE(registration.is_registered()) << "the page is not in use yet";
  registration.confirm();
  EXPECT_TRUE(registration.is_registered());
  EXPECT_GE(registration.bell(), 0);
  registration.end();
  EXPECT_FALSE(registration.is_wanted() || registration.is_registered());
  EXPECT_EQ(registration.bell(), -1);
}

TEST(Registration, IsWantedAgainWithoutACoordinator) {
  Registration registration;
  registration.begin({.name = "gpt"});
  registration.confirm();
  registration.on_unmanaged();
  EXPECT_FALSE(registration.is_registered());
  EXPECT_TRUE(registration.is_wanted());
}

TEST(Registration, ARefusalEndsOnlyWhatWaitsForItsAnswer) {
  Registration registration;
  registration.refuse("no such message");
  EXPECT_TRUE(registration.refusal().empty()) << "nothing was wanted";
  registration.begin({.name = "gpt"});
  registration.confirm();
  registration.refuse("no such message");
  EXPECT_TRUE(registration.is_wanted()) << "a registered job goes on";
  registration.end();
  registration.begin({.name = "gpt"});
  registration.refuse("the gang is complete");
  EXPECT_FALSE(registration.is_wanted());
  EXPECT_EQ(registration.refusal(), "the gang is complete");
  registration.begin({.name = "gpt"});
  EXPECT_TRUE(registration.refusal().empty()) << "the next one was not refused";
}

TEST(Registration, IsSaidAgainWithItsChanges) {
  Registration registration;
  registration.begin(with_limit(mib(64)));
  registration.change({.weight = 3.0, .is_paused = true}, 1001);
  const wire::Register message = registration.make_message({.job = JobId{3}}, 17);
  EXPECT_EQ(message.of.job, JobId{3});
  EXPECT_EQ(message.name, "gpt");
  EXPECT_EQ(message.settings.weight, 3.0);
  EXPECT_EQ(message.settings.memory_limit, mib(64));
  EXPECT_EQ(message.iterations_done, 17U);
  EXPECT_EQ(message.paused_by, 1001U);
  registration.change({.is_paused = false}, 1002);
  EXPECT_FALSE(registration.make_message({}, 17).paused_by.has_value());
  registration.end();
  registration.begin(with_limit(mib(64)));
  EXPECT_EQ(registration.make_message({}, 0).settings.weight, 1.0) << "changes end with it";
}

TEST(Registration, AChangedLimitComesBeforeTheRegisteredOne) {
  Registration registration;
  EXPECT_EQ(registration.hard_limit(), Bytes{});
  registration.begin(with_limit(mib(64)));
  EXPECT_EQ(registration.hard_limit(), mib(64));
  registration.change({.memory_limit = mib(32)}, 0);
  EXPECT_EQ(registration.hard_limit(), mib(32));
  registration.change({.is_elastic = true}, 0);
  EXPECT_EQ(registration.hard_limit(), Bytes{}) << "an elastic limit is no hard one";
}

TEST(Registration, TakesNothingButAPageAndABell) {
  Registration registration;
  registration.begin({.name = "gpt"});
  std::vector<UniqueFd> one;
  one.push_back(eventfd_of_test());
  EXPECT_EQ(registration.install(std::move(one)).error().code(), StatusCode::kProtocol);
  std::vector<UniqueFd> three = descriptors();
  three.push_back(eventfd_of_test());
  EXPECT_FALSE(registration.install(std::move(three)).has_value());
  EXPECT_EQ(registration.install(descriptors(false)).error().code(), StatusCode::kProtocol)
      << "a page that nobody has filled";
  EXPECT_EQ(registration.bell(), -1);
}

TEST(Registration, AnOlderPageStaysMapped) {
  Registration registration;
  registration.begin({.name = "gpt"});
  const Result<wire::LeasePage*> first = registration.install(descriptors());
  const Result<wire::LeasePage*> second = registration.install(descriptors());
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_NE(*first, *second);
  EXPECT_TRUE(wire::is_valid(**first)) << "reading an unmapped page would be a fault";
}

}  // namespace
}  // namespace gpushare::client
