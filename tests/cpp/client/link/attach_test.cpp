#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/client_fake_coordinator.h"
#include "tests/cpp/support/client_job_world.h"
#include "tests/cpp/support/sanitizers.h"

namespace gpushare::client {
namespace {

using ::testing::HasSubstr;

ClientConfig impatient() {
  ClientConfig config;
  config.connect_timeout = millis(50);
  return config;
}

TEST(Attach, ComesWithTheFirstChunkAndAsksForRoom) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  EXPECT_FALSE(job.runtime->is_managed());
  const Tensor tensor(*job.allocator, mib(3), 0x5a);
  EXPECT_TRUE(tensor.is_intact());
  const auto hello = coordinator.wait_for<wire::Hello>();
  EXPECT_EQ(hello.resident, Bytes{0});
  EXPECT_EQ(hello.held_term, Term{});
  const auto need = coordinator.wait_for<wire::Need>();
  EXPECT_GE(need.bytes, mib(4));
  EXPECT_EQ(need.like, mib(32));
  EXPECT_EQ(coordinator.wait_for<wire::Consumed>().n, 1U);
  EXPECT_EQ(job.allocator->room(), coordinator.room());
  EXPECT_EQ(job.num_tier_calls, 1);
  const JobStats stats = job.runtime->stats();
  EXPECT_TRUE(stats.is_managed);
  EXPECT_EQ(stats.job, JobId{7});
  EXPECT_EQ(stats.memory.resident, mib(4));
}

TEST(Attach, TellsWhatTheJobHoldsAlready) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  job.allocator->set_room(gib(1));
  const Tensor tensor(*job.allocator, mib(3), 0x5a);
  EXPECT_TRUE(job.runtime->attach().ok());
  EXPECT_EQ(coordinator.wait_for<wire::Hello>().resident, mib(4));
  EXPECT_EQ(job.allocator->room(), mib(4));
}

TEST(Attach, ManyThreadsAtOnceAttachOnce) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { const Tensor tensor(*job.allocator, mib(3), 0x11); });
  }
  for (std::thread& thread : threads)
    thread.join();
  coordinator.wait_for<wire::Hello>();
  EXPECT_FALSE(coordinator.has<wire::Hello>());
  EXPECT_EQ(job.num_tier_calls, 1);
}

TEST(Attach, WithoutACoordinatorTheJobIsUnmanaged) {
  const TestFolder folder;
  JobWorld job(folder);
  const Status status = job.runtime->attach();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("no coordinator at " + folder.file("sock")));
  const Tensor tensor(*job.allocator, mib(3), 0x5a);
  EXPECT_TRUE(tensor.is_intact());
  EXPECT_FALSE(job.runtime->is_managed());
  EXPECT_EQ(job.runtime->stats().unmanaged_reason, status.message());
  EXPECT_EQ(job.runtime->attach().message(), status.message());
  EXPECT_EQ(job.runtime->register_job({}).code(), StatusCode::kUnavailable);
  EXPECT_EQ(job.runtime->explain(seconds(1)), status.message());
}

#if !defined(GS_HAS_SANITIZER)
// Sanitizers open descriptors of their own, which would fail here.
TEST(Attach, AJobThatMayOpenNoFileIsUnmanaged) {
  const TestFolder folder;
  const FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status status = job.runtime->attach();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(status.message(), HasSubstr("eventfd"));
  EXPECT_FALSE(job.runtime->is_managed());
  EXPECT_THAT(job.runtime->stats().unmanaged_reason, HasSubstr("eventfd"));
  const Tensor tensor(*job.allocator, mib(3), 0x5a);
  EXPECT_TRUE(tensor.is_intact());
}
#endif

TEST(Attach, AnUnmanagedJobPassesTheGateAndIsCounted) {
  const TestFolder folder;
  JobWorld job(folder);
  EXPECT_FALSE(job.runtime->attach().ok());
  for (int i = 0; i < 3; ++i) {
    job.begin();
    EXPECT_TRUE(job.runtime->is_in_iteration());
    job.end(i != 1);
  }
  EXPECT_FALSE(job.runtime->is_in_iteration());
  const JobStats stats = job.runtime->stats();
  EXPECT_EQ(stats.iterations, 3U);
  EXPECT_EQ(stats.optimizer_steps, 2U);
  EXPECT_GT(stats.held, Nanos{0});
}

TEST(Attach, AnUnmanagedJobMayHaveALimitOfItsOwn) {
  const TestFolder folder;
  ClientConfig config;
  config.unmanaged_room = mib(8);
  JobWorld job(folder, config);
  const Tensor tensor(*job.allocator, mib(3), 0x5a);
  const Result<void*> more = job.allocator->allocate(mib(6));
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code(), StatusCode::kOutOfMemory);
  EXPECT_THAT(more.error().message(), HasSubstr("its room is 8.0 MiB"));
}

TEST(Attach, ACoordinatorThatRefusesIsNotAskedAgain) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"), {.refuses_hello = "protocol 9 is too new"});
  JobWorld job(folder);
  const Status status = job.runtime->attach();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("protocol 9 is too new"));
  EXPECT_FALSE(job.runtime->is_managed());
}

// A signal's handler raises at the n-th time that a waiting thread asks.
std::atomic<int> g_asks_left{0};

ClientConfig interrupted_after(int num_asks) {
  ClientConfig config = impatient();
  g_asks_left = num_asks;
  config.is_interrupted = [] { return --g_asks_left <= 0; };
  return config;
}

TEST(Attach, WaitsForACoordinatorThatDoesNotAnswerUntilInterrupted) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"), {.welcomes = false});
  JobWorld job(folder, interrupted_after(3));
  const Status status = job.runtime->attach();
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(g_asks_left, 0);
  EXPECT_EQ(job.runtime->stats().unmanaged_reason, "");
  // Not final: the next one asks anew.
  g_asks_left = 2;
  EXPECT_EQ(job.runtime->attach().code(), StatusCode::kCancelled);
  EXPECT_EQ(job.allocator->room(), Bytes{0});
}

TEST(Attach, AnInterruptedAllocationFailsAndNothingIsUnmanaged) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"), {.welcomes = false});
  JobWorld job(folder, interrupted_after(1));
  const Result<void*> block = job.allocator->allocate(mib(1));
  ASSERT_FALSE(block.has_value());
  EXPECT_EQ(block.error().code(), StatusCode::kCancelled);
  EXPECT_EQ(job.runtime->stats().unmanaged_reason, "");
}

TEST(Attach, RejectsABadConfiguration) {
  const TestFolder folder;
  ClientConfig config;
  config.idle_rule = Nanos{0};
  JobWorld job(folder, config);
  EXPECT_EQ(job.runtime->attach().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(job.runtime->stats().unmanaged_reason, HasSubstr("idle_rule"));
}

TEST(Attach, ExplainsInTheCoordinatorsWords) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  EXPECT_THAT(job.runtime->explain(seconds(1)), HasSubstr("no coordinator"));
  ASSERT_TRUE(job.runtime->attach().ok());
  EXPECT_EQ(job.runtime->explain(seconds(20)), "job 9 holds the device");
}

TEST(Register, GetsAPageAndClosesTheGate) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  EXPECT_EQ(job.allocator->route(), alloc::Route::kPrivate);
  const RegisterOptions options{.name = "gpt", .group = "sweep", .settings = {.weight = 2.0}};
  ASSERT_TRUE(job.runtime->register_job(options).ok());
  const auto wish = coordinator.wait_for<wire::Register>();
  EXPECT_EQ(wish.name, "gpt");
  EXPECT_EQ(wish.group, "sweep");
  EXPECT_EQ(wish.settings.weight, 2.0);
  EXPECT_EQ(wish.of.job, JobId{7});
  EXPECT_EQ(job.allocator->route(), alloc::Route::kOutside);
  EXPECT_EQ(wire::load(coordinator.page()).state(), wire::LeaseState::kIdle);
  EXPECT_EQ(coordinator.page().is_parked.load(), 0U);
  EXPECT_TRUE(job.runtime->stats().is_registered);
  EXPECT_EQ(job.runtime->register_job(options).code(), StatusCode::kFailedPrecondition);
}

TEST(Register, RefusesBadOptionsByThemselves) {
  const TestFolder folder;
  JobWorld job(folder);
  EXPECT_EQ(job.runtime->register_job({.name = std::string(200, 'x')}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(job.runtime->register_job({.settings = {.weight = 0}}).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(job.runtime->register_job({.rank = 2, .ranks = 2}).code(),
            StatusCode::kInvalidArgument);
}

TEST(Register, ARefusalIsTheCallersError) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"), {.refuses_register = "weight 1e9 is too much"});
  JobWorld job(folder);
  const Status status = job.runtime->register_job({});
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "weight 1e9 is too much");
}

TEST(Register, WaitsForACoordinatorThatDoesNotAnswerUntilInterrupted) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"), {.registers = false});
  JobWorld job(folder, interrupted_after(3));
  EXPECT_EQ(job.runtime->register_job({}).code(), StatusCode::kCancelled);
  coordinator.wait_for<wire::Unregister>();
  EXPECT_TRUE(job.runtime->is_managed());
  EXPECT_FALSE(job.runtime->stats().is_registered);
}

TEST(Register, UnregisterOpensTheGateForGood) {
  const TestFolder folder;
  FakeCoordinator coordinator(folder.file("sock"));
  JobWorld job(folder);
  ASSERT_TRUE(job.runtime->register_job({}).ok());
  job.runtime->unregister_job();
  job.runtime->unregister_job();
  coordinator.wait_for<wire::Unregister>();
  EXPECT_FALSE(coordinator.has<wire::Unregister>());
  EXPECT_EQ(job.allocator->route(), alloc::Route::kPrivate);
  job.begin();
  EXPECT_TRUE(job.runtime->is_managed());
  EXPECT_FALSE(job.runtime->stats().is_registered);
  ASSERT_TRUE(job.runtime->register_job({}).ok());
}

}  // namespace
}  // namespace gpushare::client
