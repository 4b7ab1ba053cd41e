#include "csrc/client/cpu/cpu_share.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

constexpr wire::CoreShare kHalf{1, 2};
constexpr wire::CoreShare kAll{};

// As torch's: what the test's process works with.
int g_num_threads = 1;
WorkerThreads fake_threads() {
  return {.num = [] { return g_num_threads; }, .set_num = [](int num) { g_num_threads = num; }};
}

int num_cpus() {
  cpu_set_t set;
  EXPECT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  return CPU_COUNT(&set);
}

// A thread that says on how many CPUs it may run.
class Worker {
 public:
  explicit Worker(std::function<void()> first = [] {})
      : thread_([this, first] {
          first();
          is_ready_.set_value();
          end_.get_future().wait();
          num_cpus_.set_value(num_cpus());
        }) {
    is_ready_.get_future().wait();
  }
  int end() {
    end_.set_value();
    thread_.join();
    return num_cpus_.get_future().get();
  }

 private:
  std::promise<void> is_ready_, end_;
  std::promise<int> num_cpus_;
  std::thread thread_;
};

class CpuShareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cpu_set_t own;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(own), &own), 0);
    if (part_of(cpus_of(own), {0, 2}).empty()) GTEST_SKIP() << "one core has no halves";
    g_num_threads = 1;
  }
  void TearDown() override { share_.settle(kAll, false); }

  const int all_ = num_cpus();
  CpuShare share_{fake_threads()};
};

TEST_F(CpuShareTest, BindsAllThreadsUntilItIsAllAgain) {
  Worker bound, freed;
  share_.settle(kHalf, false);
  EXPECT_LT(num_cpus(), all_);
  EXPECT_EQ(share_.num_bound(), static_cast<std::size_t>(num_cpus()));
  EXPECT_EQ(bound.end(), num_cpus());
  share_.settle(kAll, false);
  EXPECT_EQ(num_cpus(), all_);
  EXPECT_EQ(freed.end(), all_);
  EXPECT_EQ(share_.num_bound(), 0U);
}

TEST_F(CpuShareTest, TheHalvesAreDisjoint) {
  cpu_set_t first, second, both;
  share_.settle({0, 2}, false);
  ::sched_getaffinity(0, sizeof(first), &first);
  share_.settle({1, 2}, false);
  ::sched_getaffinity(0, sizeof(second), &second);
  CPU_AND(&both, &first, &second);
  EXPECT_EQ(CPU_COUNT(&both), 0);
  EXPECT_EQ(CPU_COUNT(&first) + CPU_COUNT(&second), all_);
}

TEST_F(CpuShareTest, AThreadThatItsUserPinnedStaysThere) {
  cpu_set_t first, half;
  share_.settle({0, 2}, false);
  ::sched_getaffinity(0, sizeof(first), &first);
  share_.settle(kAll, false);
  Worker pinned([&] { ::sched_setaffinity(0, sizeof(first), &first); });
  share_.settle(kHalf, false);
  ::sched_getaffinity(0, sizeof(half), &half);
  share_.settle(kAll, false);
  EXPECT_EQ(pinned.end(), CPU_COUNT(&first));
  EXPECT_FALSE(CPU_EQUAL(&first, &half));
}

TEST_F(CpuShareTest, ThreadsThatDoNotFitAreLeftAlone) {
  g_num_threads = all_;
  share_.settle(kHalf, false);
  EXPECT_EQ(num_cpus(), all_);
  EXPECT_EQ(g_num_threads, all_);
}

TEST_F(CpuShareTest, WithLeaveTheirNumberIsLoweredAndRaisedAgain) {
  g_num_threads = all_;
  share_.settle(kHalf, true);
  EXPECT_EQ(num_cpus(), g_num_threads);
  EXPECT_LT(g_num_threads, all_);
  share_.settle({0, static_cast<std::uint16_t>(all_)}, true);
  EXPECT_EQ(g_num_threads, 1);
  share_.settle(kAll, true);
  EXPECT_EQ(g_num_threads, all_);
}

TEST_F(CpuShareTest, BesideMoreJobsThanThereAreCoresItIsOneThatGoesAnywhere) {
  g_num_threads = all_;
  share_.settle({0, static_cast<std::uint16_t>(all_ + 1)}, true);
  EXPECT_EQ(g_num_threads, 1);
  EXPECT_EQ(num_cpus(), all_);
  share_.settle(kAll, true);
}

// Pinned by its user (OMP_PROC_BIND), as its other threads are, to a core each.
TEST_F(CpuShareTest, OneThatMayUseFewerCpusThanItHasThreadsIsLeftAlone) {
  cpu_set_t own, first;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(own), &own), 0);
  CPU_ZERO(&first);
  CPU_SET(cpus_of(own).front().number, &first);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(first), &first), 0);
  g_num_threads = all_;
  share_.settle(kHalf, true);
  EXPECT_EQ(g_num_threads, all_);
  EXPECT_EQ(num_cpus(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(own), &own), 0);
}

TEST_F(CpuShareTest, ANumberThatItsUserSetMeanwhileIsHis) {
  g_num_threads = all_;
  share_.settle(kHalf, true);
  g_num_threads = all_ + 1;
  share_.settle(kAll, true);
  EXPECT_EQ(g_num_threads, all_ + 1);
}

TEST_F(CpuShareTest, ReleasedItsThreadsGoAnywhereAndStayAsMany) {
  g_num_threads = all_;
  share_.settle(kHalf, true);
  const int lowered = g_num_threads;
  share_.release();
  EXPECT_EQ(num_cpus(), all_);
  EXPECT_EQ(g_num_threads, lowered);
  share_.settle(kHalf, true);
  EXPECT_EQ(num_cpus(), lowered);
  share_.release();
  share_.settle(kAll, true);
  EXPECT_EQ(g_num_threads, all_);
}

TEST_F(CpuShareTest, AForkedChildIsFree) {
  share_.settle(kHalf, false);
  share_.before_fork();
  const pid_t child = ::fork();
  if (child == 0) {
    share_.after_fork_in_child();
    static_cast<void>(share_.num_bound());  // no lock is left behind
    ::_exit(num_cpus() == all_ ? 0 : 1);
  }
  share_.after_fork_in_parent();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(CpuShareTest, NothingIsBoundWhereTheNumberOfThreadsIsNotKnown) {
  CpuShare unknown{{}};
  unknown.settle(kHalf, true);
  EXPECT_EQ(num_cpus(), all_);
}

}  // namespace
}  // namespace gpushare::client
