// A job's share of the cores, from the page to its threads.
#include <sched.h>

#include <gtest/gtest.h>

#include "tests/cpp/support/client_fake_coordinator.h"
#include "tests/cpp/support/client_job_world.h"

namespace gpushare::client {
namespace {

using wire::LeaseState;

int g_runtime_threads = 0;

ClientConfig with_fake_threads() {
  ClientConfig config;
  config.worker_threads = {.num = [] { return g_runtime_threads; },
                           .set_num = [](int num) { g_runtime_threads = num; }};
  return config;
}

class CoreShare : public ::testing::Test {
 protected:
  CoreShare() : coordinator_(folder_.file("sock")), job_(folder_, with_fake_threads()) {
    cpu_set_t own;
    EXPECT_EQ(::sched_getaffinity(0, sizeof(own), &own), 0);
    all_ = CPU_COUNT(&own);
    half_ = part_of(cpus_of(own), {1, 2}).size();
    g_runtime_threads = all_;
  }
  void SetUp() override {
    if (half_ == 0) GTEST_SKIP() << "one core has no halves";
  }
  void TearDown() override { job_.runtime->regain_cores(); }

  void register_job(bool has_elastic_threads) {
    EXPECT_TRUE(job_.runtime->register_job({.elastic_threads = has_elastic_threads}).ok());
    coordinator_.wait_for<wire::Register>();
  }
  // An iteration, with a fresh lease and that share.
  Term iterate_with(wire::CoreShare share) {
    auto entered = job_.begin_elsewhere();
    coordinator_.wait_state(LeaseState::kWanted);
    const Term term = coordinator_.grant_lease();
    EXPECT_TRUE(entered.get().has_value());
    job_.end();
    coordinator_.page().core_share = wire::to_bits(share);
    job_.begin();
    return term;
  }
  std::uint64_t num_cpus() { return job_.runtime->stats().num_cpus; }

  TestFolder folder_;
  FakeCoordinator coordinator_;
  JobWorld job_;
  int all_ = 0;
  std::size_t half_ = 0;
};

TEST_F(CoreShare, IsInForceFromTheNextIterationUntilTheLeaseEnds) {
  register_job(true);
  const Term term = iterate_with({1, 2});
  EXPECT_EQ(num_cpus(), half_);
  EXPECT_EQ(g_runtime_threads, static_cast<int>(half_));
  EXPECT_EQ(wire::ask(coordinator_.page(), term), wire::AskResult::kAsked);
  job_.end();
  EXPECT_EQ(num_cpus(), 0U) << "what runs now needs no lease";
  iterate_with({0, 2});
  EXPECT_EQ(num_cpus(), half_) << "with the next";
  coordinator_.page().core_share = 0;
  job_.end();
  job_.begin();
  EXPECT_EQ(num_cpus(), 0U);
  EXPECT_EQ(g_runtime_threads, all_) << "alone";
}

TEST_F(CoreShare, EndsWithALeaseThatIsTakenInTheGap) {
  register_job(true);
  const Term term = iterate_with({1, 2});
  job_.end();
  EXPECT_EQ(num_cpus(), half_) << "kept over the gap";
  EXPECT_EQ(wire::ask(coordinator_.page(), term), wire::AskResult::kTakenInGap);
  coordinator_.send(wire::Close{.of = {}, .term = term});
  coordinator_.wait_state(LeaseState::kIdle);
  EXPECT_EQ(num_cpus(), 0U);
}

TEST_F(CoreShare, AllIsRegainedWhenNoIterationsFollow) {
  register_job(true);
  iterate_with({1, 2});
  job_.end();
  job_.runtime->unregister_job();
  job_.runtime->regain_cores();
  EXPECT_EQ(num_cpus(), 0U);
  EXPECT_EQ(g_runtime_threads, all_);
}

TEST_F(CoreShare, WithoutLeaveTheNumberOfThreadsIsTheJobsOwn) {
  register_job(false);
  iterate_with({1, 2});
  EXPECT_EQ(g_runtime_threads, all_);
  EXPECT_EQ(num_cpus(), 0U) << "they do not fit";
}

}  // namespace
}  // namespace gpushare::client
