#include "csrc/client/cpu/iteration_cores.h"

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

constexpr std::uint32_t kLowerHalf = wire::to_bits({0, 2});
constexpr std::uint32_t kUpperHalf = wire::to_bits({1, 2});

// Each time that a share comes to be in force, the number of worker threads is asked for.
int g_num_asked = 0;
WorkerThreads counted_threads() {
  return {.num =
              [] {
                ++g_num_asked;
                return 1;
              },
          .set_num = [](int) {}};
}

class IterationCoresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::sched_getaffinity(0, sizeof(own_), &own_), 0);
    if (part_of(cpus_of(own_), {0, 2}).empty()) GTEST_SKIP() << "one core has no halves";
    g_num_asked = 0;
  }
  void TearDown() override {
    cores_.settle(0);
    // A binding that stayed would have the next test skipped, and so would hide itself.
    cpu_set_t now;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(now), &now), 0);
    EXPECT_TRUE(CPU_EQUAL(&now, &own_));
  }

  // Whether settle() did more than compare.
  bool has_settled(std::uint32_t share) {
    const int before = g_num_asked;
    cores_.settle(share);
    return g_num_asked > before;
  }

  cpu_set_t own_{};
  IterationCores cores_{counted_threads()};
};

TEST_F(IterationCoresTest, AShareIsSettledOnce) {
  EXPECT_TRUE(has_settled(kLowerHalf));
  EXPECT_GT(cores_.num_bound(), 0U);
  EXPECT_FALSE(has_settled(kLowerHalf)) << "nothing has changed";
  EXPECT_TRUE(has_settled(kUpperHalf));
}

TEST_F(IterationCoresTest, AllCoresEndTheBinding) {
  EXPECT_TRUE(has_settled(kLowerHalf));
  cores_.settle(0);
  EXPECT_EQ(cores_.num_bound(), 0U);
  EXPECT_TRUE(has_settled(kLowerHalf));
}

TEST_F(IterationCoresTest, AnotherThreadIsSettledAnew) {
  EXPECT_TRUE(has_settled(kLowerHalf));
  std::thread([this] { EXPECT_TRUE(has_settled(kLowerHalf)); }).join();
  EXPECT_TRUE(has_settled(kLowerHalf)) << "the other thread iterated last";
}

TEST_F(IterationCoresTest, TheSameShareIsSettledAfterARelease) {
  EXPECT_TRUE(has_settled(kLowerHalf));
  cores_.release();
  EXPECT_EQ(cores_.num_bound(), 0U);
  EXPECT_TRUE(has_settled(kLowerHalf));
  EXPECT_GT(cores_.num_bound(), 0U);
}

}  // namespace
}  // namespace gpushare::client
