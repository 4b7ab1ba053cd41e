#include "csrc/sched/time/shares.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "csrc/sched/coordinator.h"
#include "csrc/sched/table/options.h"
#include "csrc/sched/table/table.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/wire/address.h"
#include "csrc/wire/job_messages.h"
#include "csrc/wire/limits.h"

namespace gpushare::sched {
namespace {

constexpr std::uint32_t kAlice = 7;
constexpr std::uint32_t kBob = 8;
constexpr std::uint32_t kCarol = 9;

TEST(Shares, OfAUserWithoutJobsOnlyWhatHeIsAheadIsKept) {
  Table table = *make_table({}, Nanos{0});
  Device& device = table.device;
  Job& job = table.jobs.make(JobId{1});
  job.who.of.device = device.name;
  job.who.uid = kAlice;
  ClassTimes& times = device.lanes.front().times.at(2);
  times.of_users = 10;
  times.users[kAlice].virtual_time = 5;
  times.users[kBob].virtual_time = 10;
  times.users[kCarol].virtual_time = 10.5;
  forget_absent_users(table);
  EXPECT_TRUE(times.users.contains(kAlice)) << "she has a job";
  EXPECT_FALSE(times.users.contains(kBob));
  EXPECT_TRUE(times.users.contains(kCarol));
}

// Nobody takes a step for a job that is idle.
TEST(Shares, WhoIsAtHisLimitIsSoOnlyUntilHeHasEarned) {
  CoordinatorOptions options;
  options.users.others.share_limit = 0.5;
  const auto coordinator = *Coordinator::create(options, Nanos{0});
  wire::Address of;
  of.device = options.device;
  const auto hear = [&](auto message, Nanos now) {
    message.of = of;
    coordinator->on_message(JobId{1}, message, now);
  };
  wire::Hello hello;
  hello.protocol = wire::kProtocolVersion;
  hello.pid = 11;
  hear(hello, Nanos{0});
  of.job = JobId{1};
  hear(wire::Register{}, Nanos{0});
  hear(wire::Wanted{}, Nanos{0});
  wire::Closed closed;
  closed.term = Term{1};
  hear(closed, seconds(2));
  const auto is_at_limit = [&](Nanos now) {
    return coordinator->snapshot(now).devices.front().jobs.front().is_at_share_limit;
  };
  EXPECT_TRUE(is_at_limit(seconds(2)));
  EXPECT_FALSE(is_at_limit(seconds(10)));
}

TEST(Shares, AnAllowanceThatIsFullIsNotKept) {
  CoordinatorOptions options;
  options.users.others.share_limit = 0.5;
  Table table = *make_table(options, Nanos{0});
  Device& device = table.device;
  device.allowances[kBob] = {.seconds = 0.3, .as_of = seconds(1), .is_used_up = false};
  settle_allowances(table, seconds(1) + millis(300));
  EXPECT_TRUE(device.allowances.contains(kBob));
  settle_allowances(table, seconds(1) + millis(500));
  EXPECT_FALSE(device.allowances.contains(kBob));
}

}  // namespace
}  // namespace gpushare::sched
