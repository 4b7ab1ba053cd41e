#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/sched/events/change.h"
#include "csrc/sched/events/handlers.h"
#include "csrc/sched/table/options.h"
#include "csrc/sched/table/step.h"
#include "csrc/sched/table/table.h"
#include "csrc/sched/time/begin_step.h"
#include "csrc/wire/messages.h"

namespace gpushare::sched {
namespace {

struct ConnectionWorld {
  ConnectionWorld() : table(*make_table({}, Nanos{0})) {}

  Job& hello(std::uint64_t id, Bytes resident = {}, Term held_term = {}) {
    wire::Hello hello;
    hello.of.device = table.device.name;
    hello.pid = static_cast<std::int32_t>(id) + 100;
    hello.resident = resident;
    hello.held_term = held_term;
    Step step = begin_step(table, seconds(1), false);
    on_hello(step, JobId{id}, hello);
    return table.at(JobId{id});
  }

  Table table;
};

TEST(HandleConnection, AJobThatWasHereBeforeHasCounted) {
  ConnectionWorld world;
  EXPECT_FALSE(world.hello(1).measured.has_counted_before) << "it is new";
  EXPECT_TRUE(world.hello(1).measured.has_counted_before);
  EXPECT_TRUE(world.hello(2, mib(5)).measured.has_counted_before) << "at another coordinator";
  EXPECT_TRUE(world.hello(3, {}, Term{4}).measured.has_counted_before);
}

TEST(HandleConnection, EachRegistrationIsMeasuredByItself) {
  ConnectionWorld world;
  Profile known;
  known.iteration = millis(50);
  known.iterations = 100;
  world.table.profiles.note({0, 5}, known);
  Job& job = world.hello(1);
  Step step = begin_step(world.table, seconds(1), false);
  wire::Register wish;
  wish.fingerprint = 5;
  on_register(step, job, wish);
  wire::Usage usage;
  usage.iterations = 30;
  usage.busy = seconds(3);
  job.observe(usage, seconds(9));
  EXPECT_EQ(job.measured.busy, seconds(3));
  on_unregister(step, job);
  EXPECT_EQ(world.table.profiles.find({0, 5})->iterations, 46U) << "and 16 of those before";
  EXPECT_EQ(job.measured.iterations, 0U);
  EXPECT_EQ(job.measured.busy, Nanos{});
}

// A job with this model and name, that says no length, and has run so many iterations.
Job& job_that_ran(ConnectionWorld& world, Step& step, std::uint64_t id, std::uint64_t iterations) {
  Job& job = world.hello(id);
  wire::Register wish;
  wish.of = job.who.of;
  wish.name = "vgg";
  wish.fingerprint = 5;
  on_register(step, job, wish);
  wire::Usage usage;
  usage.iterations = iterations;
  usage.busy = seconds(static_cast<std::int64_t>(iterations));
  job.observe(usage, seconds(9));
  return job;
}

TEST(HandleConnection, HowLongAJobRanIsExpectedOfTheNextWithItsModel) {
  ConnectionWorld world;
  Step step = begin_step(world.table, seconds(1), false);
  Job& first = job_that_ran(world, step, 1, 40);
  EXPECT_EQ(first.iterations_to_go(), 0) << "nothing is known";
  on_gone(step, first);
  on_unregister(step, job_that_ran(world, step, 2, 100));
  Job& third = job_that_ran(world, step, 3, 10);
  EXPECT_EQ(third.iterations_to_go(), (30 + 90) / 2);
  third.settings.iterations_total = 25;
  EXPECT_EQ(third.iterations_to_go(), 15) << "what it says counts more";
  third.settings.iterations_total = 5;
  EXPECT_EQ(third.iterations_to_go(), 0) << "it has run more than it said";
}

TEST(HandleConnection, AJobThatConnectsAnewHasTheLengthThatItsPageSays) {
  ConnectionWorld world;
  Step step = begin_step(world.table, seconds(1), false);
  Job& job = job_that_ran(world, step, 1, 40);
  job.connect(wire::Hello{}, true);
  wire::Usage usage;
  usage.iterations = 50;
  job.observe(usage, seconds(10));
  EXPECT_EQ(job.measured.length, 50U);
  usage.iterations = 60;
  job.observe(usage, seconds(11));
  EXPECT_EQ(job.measured.length, 60U);
}

TEST(HandleConnection, WhatAJobSaysOfItselfIsKeptWithinWhatItsUserMayHave) {
  ConnectionWorld world;
  UserOptions& user = world.table.options.users.others;
  user.max_priority = wire::Priority::kNormal;
  user.max_weight = 2;
  Job& job = world.hello(1);
  Step step = begin_step(world.table, seconds(1), false);
  wire::Register wish;
  wish.of = job.who.of;
  wish.settings.priority = wire::Priority::kGuaranteed;
  wish.settings.weight = 1e6;
  on_register(step, job, wish);
  EXPECT_EQ(job.settings.priority, wire::Priority::kNormal);
  EXPECT_EQ(job.settings.weight, 2);
  const Ready result = step.take();
  const auto& answer = std::get<wire::Registered>(result.messages.at(0).message);
  EXPECT_EQ(answer.note,
            "jobs of user 0 may have at most priority normal, not guaranteed (max_priority) and "
            "weight 2, not 1e+06 (max_weight)");

  const wire::Changes urgent{.priority = wire::Priority::kInteractive};
  const Status refused =
      change_job(step, job.id, urgent, {.uid = job.who.uid, .may_change_all = false});
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("at most priority normal, not interactive"));
  EXPECT_TRUE(change_job(step, job.id, {.memory_limit = mib(9)}, {job.who.uid, false}).ok());
  EXPECT_TRUE(change_job(step, job.id, urgent, {.uid = 7, .may_change_all = true}).ok());
  EXPECT_EQ(job.settings.priority, wire::Priority::kInteractive) << "who owns the coordinator may";
}

// What was said of the free lane stayed until the adopted lease had ended, and was told as why the
// lane is free then; and a job that had lent its gap counted as a lender while it held the lane.
TEST(HandleConnection, AnAdoptedLeaseEndsWhatWasSaidOfTheFreeLane) {
  ConnectionWorld world;
  Lane& lane = world.table.device.lanes.front();
  lane.wait_reason = "1 is next, 5.0 MiB short: asked others to give room";
  lane.lenders = {JobId{2}};
  world.hello(2, mib(5), Term{4});
  ASSERT_TRUE(lane.lease.has_value());
  EXPECT_EQ(lane.lease->job(), JobId{2});
  EXPECT_EQ(lane.wait_reason, "");
  EXPECT_TRUE(lane.lenders.empty());
}

TEST(HandleConnection, LessThanTheMostIsLeftAsItIs) {
  ConnectionWorld world;
  world.table.options.users.others.max_priority = wire::Priority::kNormal;
  Job& job = world.hello(1);
  Step step = begin_step(world.table, seconds(1), false);
  wire::Register wish;
  wish.of = job.who.of;
  wish.settings.priority = wire::Priority::kOpportunistic;
  on_register(step, job, wish);
  EXPECT_EQ(job.settings.priority, wire::Priority::kOpportunistic);
  const Ready result = step.take();
  EXPECT_EQ(std::get<wire::Registered>(result.messages.at(0).message).note, "");
}

}  // namespace
}  // namespace gpushare::sched
