#include "csrc/client/memory/stopped_threads.h"

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

TEST(StoppedThreads, MemoryMayLeaveWhileOneWaits) {
  StoppedThreads threads;
  EXPECT_FALSE(threads.may_memory_leave()) << "none waits";
  {
    const StoppedThreads::Scope scope(threads, false);
    EXPECT_TRUE(threads.may_memory_leave());
  }
  EXPECT_FALSE(threads.may_memory_leave());
}

TEST(StoppedThreads, MemoryStaysForTheSiblingsOfAParallelRegion) {
  StoppedThreads threads;
  {
    const StoppedThreads::Scope scope(threads, true);
    EXPECT_FALSE(threads.may_memory_leave());
  }
  const StoppedThreads::Scope next(threads, false);
  EXPECT_TRUE(threads.may_memory_leave()) << "the region has ended";
}

TEST(StoppedThreads, AJobThatAllocatesFromTwoThreadsIsNeverStoppedAgain) {
  StoppedThreads threads;
  {
    const StoppedThreads::Scope first(threads, false);
    const StoppedThreads::Scope second(threads, false);
    EXPECT_FALSE(threads.may_memory_leave());
  }
  const StoppedThreads::Scope alone(threads, false);
  EXPECT_FALSE(threads.may_memory_leave());
}

TEST(StoppedThreads, AThreadAtWorkBesideAStoppedOneMakesTwo) {
  StoppedThreads threads;
  threads.note_thread_at_work();
  const StoppedThreads::Scope scope(threads, false);
  EXPECT_TRUE(threads.may_memory_leave()) << "that one worked before, and may be this one";
  threads.note_thread_at_work();
  EXPECT_FALSE(threads.may_memory_leave());
}

TEST(StoppedThreads, MemoryThatIsAwayStaysKnownAfterTheWait) {
  StoppedThreads threads;
  EXPECT_FALSE(threads.is_memory_away());
  {
    const StoppedThreads::Scope scope(threads, false);
    threads.set_memory_away(true);
  }
  EXPECT_TRUE(threads.is_memory_away()) << "the thread restores before it goes on";
  threads.set_memory_away(false);
  EXPECT_FALSE(threads.is_memory_away());
}

}  // namespace
}  // namespace gpushare::client
