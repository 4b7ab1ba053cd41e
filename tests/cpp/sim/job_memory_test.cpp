#include "csrc/sim/run/job_memory.h"

#include <gtest/gtest.h>

#include "csrc/wire/job_messages.h"

namespace gpushare::sim {
namespace {

constexpr JobMemory::Moment kRuns{};
constexpr JobMemory::Moment kIsQuiet{.is_parked = false, .is_quiet = true};
constexpr JobMemory::Moment kIsParked{.is_parked = true, .is_quiet = true};
constexpr Bytes kLive = mib(40);

// Of 100 MiB of room 10 are unused, 50 are free memory, and 40 are live.
JobMemory make_memory() {
  return {.room = mib(100), .resident = mib(90), .spilled = {}, .spilled_file = {}};
}

wire::Revoke ask(Bytes bytes, Bytes most_ram = {}, Bytes most_file = {}) {
  return {.of = {}, .n = 7, .bytes = bytes, .most_ram = most_ram, .most_file = most_file};
}

TEST(JobMemory, GivesUnusedRoomThenFreeThenLiveMemory) {
  JobMemory memory = make_memory();
  wire::Released given = memory.give(ask(mib(4), mib(100)), kLive, kIsParked);
  EXPECT_EQ(given.n, 7U);
  EXPECT_EQ(given.bytes, mib(4));
  EXPECT_EQ(memory.resident, mib(90)) << "it was not used";
  memory.room -= given.bytes;
  given = memory.give(ask(mib(56), mib(100)), kLive, kIsParked);
  EXPECT_EQ(given.bytes, mib(56));
  EXPECT_EQ(given.dropped, mib(50));
  EXPECT_EQ(given.spilled, Bytes{}) << "6 MiB were unused";
  memory.room -= given.bytes;
  given = memory.give(ask(mib(15), mib(100)), kLive, kIsParked);
  EXPECT_EQ(given.dropped, Bytes{});
  EXPECT_EQ(given.spilled, mib(15));
  EXPECT_EQ(memory.resident, mib(25));
  EXPECT_EQ(memory.spilled, mib(15));
}

TEST(JobMemory, GivesOnlyUnusedRoomInAnIteration) {
  JobMemory memory = make_memory();
  const wire::Released given = memory.give(ask(mib(80), mib(100)), kLive, kRuns);
  EXPECT_EQ(given.bytes, mib(10));
  EXPECT_EQ(given.unplaced, Bytes{}) << "no place was looked for";
  EXPECT_EQ(memory.resident, mib(90));
}

TEST(JobMemory, KeepsLiveMemoryWhileItIsNotParked) {
  JobMemory memory = make_memory();
  const wire::Released given = memory.give(ask(mib(80), mib(100)), kLive, kIsQuiet);
  EXPECT_EQ(given.bytes, mib(60));
  EXPECT_EQ(memory.resident, kLive);
  EXPECT_EQ(memory.spilled, Bytes{});
}

TEST(JobMemory, FillsRamBeforeTheFileAndSaysWhatHasNoPlace) {
  JobMemory memory = make_memory();
  const wire::Released given = memory.give(ask(mib(100), mib(8), mib(20)), kLive, kIsParked);
  EXPECT_EQ(given.spilled, mib(28));
  EXPECT_EQ(given.spilled_file, mib(20));
  EXPECT_EQ(given.unplaced, mib(12));
  EXPECT_EQ(given.bytes, mib(88));
  EXPECT_EQ(memory.spilled_file, mib(20));
  EXPECT_EQ(memory.resident, mib(12));
}

TEST(JobMemory, IsWholeAgainWhenAnIterationBegins) {
  JobMemory memory = make_memory();
  memory.give(ask(mib(100), mib(8), mib(20)), kLive, kIsParked);
  EXPECT_EQ(memory.restore(mib(90)), mib(28));
  EXPECT_EQ(memory.resident, mib(90));
  EXPECT_EQ(memory.spilled, Bytes{});
  EXPECT_EQ(memory.spilled_file, Bytes{});
  EXPECT_EQ(memory.restore(mib(90)), Bytes{}) << "nothing is away any more";
}

}  // namespace
}  // namespace gpushare::sim
