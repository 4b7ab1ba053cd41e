#include "csrc/client/memory/holds.h"

#include <thread>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

// Identities of threads, without two threads that must be kept alive.
std::thread::id this_one() { return std::this_thread::get_id(); }
std::thread::id another_one() { return std::thread::id(); }

TEST(Holds, AreCountedUntilTheLastIsDropped) {
  Holds holds;
  EXPECT_FALSE(holds.is_held());
  holds.add(this_one());
  holds.add(this_one());
  EXPECT_TRUE(holds.drop(this_one()));
  EXPECT_TRUE(holds.is_held());
  EXPECT_TRUE(holds.drop(this_one()));
  EXPECT_FALSE(holds.is_held());
}

TEST(Holds, ADropWithoutAHoldChangesNothing) {
  Holds holds;
  EXPECT_FALSE(holds.drop(this_one()));
  holds.add(this_one());
  EXPECT_TRUE(holds.is_held());
}

TEST(Holds, AnotherThreadMayDropAHold) {
  Holds holds;
  holds.add(this_one());
  EXPECT_TRUE(holds.drop(another_one()));
  EXPECT_FALSE(holds.is_held());
  // The hold is gone from the thread that added it, too.
  const Holds::Stopped stopped(holds, this_one());
  holds.add(another_one());
  EXPECT_TRUE(holds.is_held_at_work());
}

TEST(Holds, OfAStoppedThreadAreNotAtWork) {
  Holds holds;
  holds.add(this_one());
  EXPECT_TRUE(holds.is_held_at_work());
  {
    const Holds::Stopped stopped(holds, this_one());
    EXPECT_FALSE(holds.is_held_at_work());
    EXPECT_TRUE(holds.is_held());
    holds.add(another_one());
    EXPECT_TRUE(holds.is_held_at_work());
    EXPECT_TRUE(holds.drop(another_one()));
  }
  EXPECT_TRUE(holds.is_held_at_work());
}

TEST(Holds, OfOthersStayAtWorkWhileAThreadWithoutHoldsIsStopped) {
  Holds holds;
  holds.add(another_one());
  const Holds::Stopped stopped(holds, this_one());
  EXPECT_TRUE(holds.is_held_at_work());
}

TEST(Holds, OneThatStartsIsNotComplete) {
  Holds holds;
  EXPECT_TRUE(holds.are_all_starting());
  holds.add(this_one());
  EXPECT_FALSE(holds.are_all_starting());
  {
    const Holds::Starting starting(holds);
    EXPECT_TRUE(holds.are_all_starting());
    holds.add(another_one());
    EXPECT_FALSE(holds.are_all_starting()) << "the other one is complete";
    EXPECT_TRUE(holds.drop(another_one()));
  }
  EXPECT_FALSE(holds.are_all_starting());
}

}  // namespace
}  // namespace gpushare::client
