// Two jobs of one lane: what is promoted, donated and given back, and that bytes stay apart.
#include "csrc/alloc/residency/lane_chunks.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/blocks/chunk.h"

#include "tests/cpp/support/alloc_lane.h"
#include "tests/cpp/support/readable.h"

namespace gpushare::testing {
namespace {

using alloc::Route;

constexpr Bytes kTensor = mib(6);

// One iteration: `num` tensors that die with it, and what `keep` says of the last.
void iterate(LaneJob& job, int num, bool keep = false) {
  const std::size_t before = job.world.live.size();
  for (int i = 0; i < num; ++i)
    ASSERT_TRUE(job.world.take(kTensor));
  EXPECT_TRUE(job.world.is_intact());
  while (job.world.live.size() > before + (keep ? 1 : 0))
    job.world.give(before);
}

void turn(Lane& lane, LaneJob& job, int num, bool keep = false) {
  ASSERT_TRUE(lane.open(job).ok());
  iterate(job, num, keep);
  lane.close(job);
  job.world.allocator->check_invariants();
}

TEST(LaneChunks, PromotesWhatWasFreeAtThreeCloses) {
  Lane lane;
  LaneJob job(mib(100));
  ASSERT_TRUE(lane.open(job).ok());
  ASSERT_TRUE(job.world.take(kTensor));  // lives on
  lane.close(job);
  for (int i = 0; i < 2; ++i)
    turn(lane, job, 2);
  EXPECT_EQ(job.lane.size(), 0U);
  ASSERT_TRUE(lane.open(job).ok());
  iterate(job, 2);
  const alloc::LaneChange change = lane.close(job);
  EXPECT_EQ(change.given, kTensor * 2);
  EXPECT_EQ(job.lane.size(), 6U);
  EXPECT_EQ(job.world.allocator->room(), mib(100) - kTensor * 2);
  EXPECT_EQ(job.world.allocator->backed(), kTensor);
  EXPECT_EQ(job.world.vmm.backed(), kTensor);
  turn(lane, job, 2);
  EXPECT_EQ(job.world.allocator->stats().lane_bytes, kTensor * 2);
  EXPECT_EQ(job.world.allocator->backed(), kTensor);
  EXPECT_EQ(lane.file().occupied(), kTensor * 2);
}

TEST(LaneChunks, PromotesNothingUnlessToldTo) {
  Lane lane;
  LaneJob job(mib(100));
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(lane.open(job).ok());
    iterate(job, 2);
    EXPECT_EQ(lane.close(job, {}).given, Bytes{});
  }
  EXPECT_EQ(job.lane.size(), 0U);
}

TEST(LaneChunks, TwoJobsNeedThePoolOnceAndSwitchWithoutACall) {
  Lane lane;
  LaneJob a(mib(100));
  LaneJob b(mib(100));
  for (int i = 0; i < 4; ++i) {
    turn(lane, a, 3);
    turn(lane, b, 2);
  }
  EXPECT_EQ(lane.file().occupied(), kTensor * 3);
  EXPECT_EQ(a.world.allocator->backed() + b.world.allocator->backed(), Bytes{});
  const int calls = a.world.vmm.num_calls() + b.world.vmm.num_calls();
  for (int i = 0; i < 5; ++i) {
    turn(lane, a, 3);
    turn(lane, b, 2);
  }
  EXPECT_EQ(a.world.vmm.num_calls() + b.world.vmm.num_calls(), calls);
}

// Twelve chunks are three portions.
TEST(LaneChunks, AnOpenThatIsStoppedGetsFurtherEachTimeAndGivesNoAccess) {
  constexpr Bytes kLarge = mib(24);
  Lane lane;
  LaneJob job(mib(100));
  void* tensor = nullptr;
  for (int i = 0; i < alloc::LaneChunks::kFreeCloses; ++i) {
    ASSERT_TRUE(lane.open(job).ok());
    tensor = *job.world.allocator->allocate(kLarge);
    job.world.allocator->free(tensor);
    lane.close(job, {.may_promote = true, .is_strict = true});
  }
  ASSERT_EQ(job.lane.size(), 12U);
  const alloc::Ends at_once = [] { return true; };
  for (const Bytes mapped : {mib(8), mib(16)}) {
    EXPECT_EQ(lane.open(job, at_once).code(), StatusCode::kCancelled);
    EXPECT_EQ(lane.file().occupied(), mapped);
    EXPECT_FALSE(is_readable(tensor));
  }
  ASSERT_TRUE(lane.open(job, at_once).ok());
  EXPECT_EQ(job.lane.size(), 12U);
  EXPECT_TRUE(is_readable(tensor));
  iterate(job, 4);
}

TEST(LaneChunks, ScrubsWhatTheNextHolderCouldRead) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 1);
  ASSERT_TRUE(lane.open(a).ok());
  std::byte* const tensor = static_cast<std::byte*>(*a.world.allocator->allocate(kTensor));
  fill(tensor, kTensor, 7);
  a.world.allocator->free(tensor);
  a.world.allocator->set_route(Route::kOutside);
  EXPECT_TRUE(is_filled(tensor, kTensor, 7));
  a.lane.close({.scrub = true});
  EXPECT_TRUE(std::all_of(tensor, tensor + kTensor.to_size(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(LaneChunks, StrictTakesAccessAwayBetweenLeases) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 2);
  for (const bool is_strict : {false, true, false}) {
    ASSERT_TRUE(lane.open(a).ok());
    std::byte* const tensor = static_cast<std::byte*>(*a.world.allocator->allocate(kTensor));
    fill(tensor, kTensor, 7);
    a.world.allocator->free(tensor);
    lane.close(a, {.is_strict = is_strict});
    EXPECT_EQ(is_readable(tensor), !is_strict);
    EXPECT_EQ(a.world.vmm.forbidden(), is_strict ? kTensor * 2 : Bytes{});
    ASSERT_TRUE(lane.open(a).ok());
    EXPECT_TRUE(is_filled(tensor, kTensor, 7)) << "nobody else was there";
    lane.close(a);
  }
}

TEST(LaneChunks, StrictLeavesWhatWasDonatedReadable) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 2);
  ASSERT_TRUE(lane.open(a).ok());
  ASSERT_TRUE(a.world.take(kTensor));
  lane.close(a, {.is_strict = true});
  EXPECT_TRUE(a.world.is_intact());
  EXPECT_EQ(a.world.vmm.forbidden(), kTensor);
  ASSERT_TRUE(a.lane.leave().ok());
  EXPECT_EQ(a.world.vmm.forbidden(), Bytes{});
  turn(lane, a, 2);  // private again
}

TEST(LaneChunks, AccessThatCannotBeHadAgainIsTriedAgain) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 2);
  ASSERT_TRUE(lane.open(a).ok());
  lane.close(a, {.is_strict = true});
  a.world.vmm.fail_at(1);
  EXPECT_FALSE(lane.open(a).ok());
  EXPECT_TRUE(lane.open(a).ok());
  EXPECT_EQ(a.world.vmm.forbidden(), Bytes{});
  iterate(a, 2);
}

TEST(LaneChunks, WhatNoIterationUsesLeavesTheLane) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 3);
  ASSERT_EQ(a.lane.size(), 9U);
  for (int i = 0; i < alloc::LaneChunks::kUnusedCloses - 1; ++i)
    turn(lane, a, 2);
  EXPECT_EQ(a.lane.size(), 9U);
  turn(lane, a, 3);  // once more in time
  for (int i = 0; i < alloc::LaneChunks::kUnusedCloses; ++i)
    turn(lane, a, 2);
  EXPECT_EQ(a.lane.size(), 6U);
  EXPECT_EQ(a.world.vmm.shared(), kTensor * 2);
  EXPECT_EQ(a.world.allocator->backed(), Bytes{});
  turn(lane, a, 3);  // private memory first, and the lane's after three closes
  EXPECT_EQ(a.world.allocator->backed(), kTensor);
  for (int i = 0; i < 2; ++i)
    turn(lane, a, 3);
  EXPECT_EQ(a.lane.size(), 9U);
}

TEST(LaneChunks, DonatesWhatLivesOnAndOthersTakeAnotherSlot) {
  Lane lane;
  LaneJob a(mib(100));
  LaneJob b(mib(100));
  for (int i = 0; i < 4; ++i) {
    turn(lane, a, 2);
    turn(lane, b, 2);
  }
  const Bytes room = a.world.allocator->room();
  turn(lane, a, 2, true);
  EXPECT_EQ(lane.num_owned(), 3U);
  EXPECT_EQ(a.world.allocator->room(), room + kTensor);
  EXPECT_EQ(a.world.allocator->backed(), kTensor);
  EXPECT_EQ(a.world.allocator->stats().donated_bytes, kTensor);
  turn(lane, b, 2);  // writes to all its lane chunks
  EXPECT_TRUE(a.world.is_intact());
  EXPECT_EQ(lane.file().occupied(), kTensor * 3);
}

TEST(LaneChunks, ADonatedChunkComesBackAfterTwiceAsManyCloses) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 1);
  turn(lane, a, 1, true);
  ASSERT_EQ(lane.num_owned(), 3U);
  ASSERT_TRUE(lane.open(a).ok());
  a.world.give(0);
  lane.close(a);
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 1);
  EXPECT_EQ(lane.num_owned(), 3U);
  turn(lane, a, 1);
  EXPECT_EQ(lane.num_owned(), 0U);
  EXPECT_EQ(a.lane.size(), 3U);
  EXPECT_EQ(a.world.allocator->backed(), Bytes{});
}

TEST(LaneChunks, ASpilledDonatedChunkComesBackAsPrivateMemory) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 1);
  turn(lane, a, 1, true);
  ASSERT_EQ(lane.file().occupied(), kTensor);
  const alloc::ReleaseOutcome outcome = a.world.residency.release(mib(100), true);
  EXPECT_EQ(outcome.spilled, kTensor);
  EXPECT_EQ(lane.file().occupied(), Bytes{});
  a.world.allocator->set_room(mib(100));
  ASSERT_TRUE(a.world.residency.restore().ok());
  EXPECT_TRUE(a.world.is_intact());
  EXPECT_EQ(lane.close(a).returned.size(), 3U);
  EXPECT_EQ(lane.num_owned(), 0U);
}

TEST(LaneChunks, LeavesOpenMemoryToItsJobWhenTheCoordinatorGoes) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 2);
  ASSERT_TRUE(lane.open(a).ok());
  ASSERT_TRUE(a.world.take(kTensor));
  ASSERT_TRUE(a.lane.on_disconnect(true).ok());
  EXPECT_EQ(a.world.allocator->backed(), kTensor * 2);
  EXPECT_EQ(a.lane.donated_slots().size(), 6U);
  a.lane.forget_slots();
  a.world.allocator->set_route(Route::kOutside);
  const alloc::LaneChange change = a.lane.close({.may_promote = true});
  EXPECT_TRUE(change.returned.empty() && change.donated.empty());
  EXPECT_TRUE(a.world.is_intact());
  EXPECT_EQ(lane.file().occupied(), Bytes{});
  EXPECT_EQ(a.world.vmm.shared(), Bytes{});
}

TEST(LaneChunks, LeavesTheLaneWhereItIsClosed) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 5; ++i)
    turn(lane, a, 2);
  ASSERT_EQ(a.lane.size(), 6U);
  a.world.vmm.fail_at(1);
  EXPECT_FALSE(a.lane.leave().ok());
  EXPECT_EQ(a.lane.size(), 6U);
  ASSERT_TRUE(a.lane.on_disconnect(false).ok());
  EXPECT_EQ(a.lane.size(), 0U);
  EXPECT_EQ(a.world.vmm.backed(), Bytes{});
  turn(lane, a, 2);  // private again
  EXPECT_TRUE(a.world.is_intact());
}

TEST(LaneChunks, MakesPrivateWhatAChildMayRead) {
  Lane lane;
  LaneJob a(mib(100));
  for (int i = 0; i < 4; ++i)
    turn(lane, a, 2);
  turn(lane, a, 2, true);
  ASSERT_TRUE(lane.open(a).ok());
  ASSERT_TRUE(a.world.take(kTensor));
  a.lane.make_live_private();
  EXPECT_TRUE(a.world.is_intact());
  EXPECT_EQ(a.world.vmm.shared(), Bytes{});
  EXPECT_EQ(a.world.allocator->backed(), kTensor * 2);
}

// Whatever two jobs do, in any order: nobody's bytes are lost or seen by the other, and the device
// holds what the books say.
class Model {
 public:
  void step() {
    LaneJob& job = *jobs_[open_];
    switch (*rc::gen::weightedElement<int>({{4, 0}, {4, 1}, {4, 2}, {1, 3}, {1, 4}, {1, 5}})) {
      case 0: job.world.take(mib(*rc::gen::inRange(1, 6)) / 2); break;
      case 1: give_any(job); break;
      case 2: hand_over(); break;
      case 3: lane_.shrink_soon = true; break;
      case 4: job.lane.make_live_private(); break;
      default: give_all(job); break;
    }
    check();
  }

 private:
  struct Pool : Lane {
    bool shrink_soon = false;
  };

  static void give_any(LaneJob& job) {
    if (job.world.live.empty()) return;
    job.world.give(*rc::gen::inRange<std::size_t>(0, job.world.live.size()));
  }
  static void give_all(LaneJob& job) {
    while (!job.world.live.empty())
      job.world.give(0);
  }
  void hand_over() {
    lane_.close(*jobs_[open_]);
    if (lane_.shrink_soon) lane_.shrink();
    lane_.shrink_soon = false;
    open_ = 1 - open_;
    RC_ASSERT(lane_.open(*jobs_[open_]).ok());
  }
  void check() {
    for (const auto& job : jobs_) {
      job->world.allocator->check_invariants();
      RC_ASSERT(job->world.is_intact());
      const alloc::MemoryStats stats = job->world.allocator->stats();
      RC_ASSERT(job->world.vmm.backed() == job->world.allocator->backed() + stats.lane_bytes);
      RC_ASSERT(job->world.vmm.shared() == stats.donated_bytes + stats.lane_bytes);
    }
  }

  Pool lane_;
  std::vector<std::unique_ptr<LaneJob>> jobs_ = make_jobs();
  std::size_t open_ = 0;

  std::vector<std::unique_ptr<LaneJob>> make_jobs() {
    std::vector<std::unique_ptr<LaneJob>> jobs;
    for (int i = 0; i < 2; ++i)
      jobs.push_back(std::make_unique<LaneJob>(Bytes{INT64_MAX}));
    EXPECT_TRUE(lane_.open(*jobs[0]).ok());
    return jobs;
  }
};

TEST(LaneChunks, KeepsBytesApartWhateverTwoJobsDo) {
  EXPECT_TRUE(rc::check("no byte is lost or foreign", [] {
    Model model;
    const int num_steps = *rc::gen::inRange(0, 60);
    for (int i = 0; i < num_steps; ++i)
      model.step();
  }));
}

}  // namespace
}  // namespace gpushare::testing
