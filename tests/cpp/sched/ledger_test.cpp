#include "csrc/sched/table/ledger.h"

#include <rapidcheck.h>

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

constexpr JobId kA{1};
constexpr JobId kB{2};

TEST(Ledger, KeepsTheSumWithinTheCapacity) {
  Ledger ledger(mib(100));
  ledger.attach(kA, mib(10));
  ledger.attach(kB, Bytes{0});
  ledger.raise(kB, mib(90));
  EXPECT_EQ(ledger.free(), Bytes{0});
  EXPECT_EQ(ledger.room(kB), mib(90));
  ledger.lower(kB, mib(40));
  EXPECT_EQ(ledger.free(), mib(40));
  ledger.remove(kB);
  EXPECT_EQ(ledger.free(), mib(90));
  EXPECT_EQ(ledger.room(kB), Bytes{0});
}

TEST(Ledger, BooksWhatAJobComesWithEvenBeyondTheCapacity) {
  Ledger ledger(mib(100));
  ledger.attach(kA, mib(70));
  ledger.attach(kB, mib(60));
  EXPECT_EQ(ledger.free(), mib(-30));
  ledger.attach(kA, mib(20));
  EXPECT_EQ(ledger.free(), mib(20)) << "a second Hello states the truth anew";
}

TEST(Ledger, WhatOthersHoldOnlyBlocksGrowth) {
  Ledger ledger(mib(100));
  ledger.attach(kA, mib(70));
  ledger.withhold(mib(40));
  EXPECT_EQ(ledger.capacity(), mib(60));
  EXPECT_EQ(ledger.configured(), mib(100));
  EXPECT_EQ(ledger.free(), mib(-10));
  EXPECT_EQ(ledger.room(kA), mib(70));
  ledger.lower(kA, mib(20));
  ledger.raise(kA, mib(10));
  ledger.withhold(Bytes{0});
  EXPECT_EQ(ledger.free(), mib(40));
}

TEST(LedgerDeathTest, RefusesToGiveWhatIsNotThere) {
  Ledger ledger(mib(100));
  ledger.attach(kA, mib(90));
  EXPECT_DEATH(ledger.raise(kA, mib(11)), "by <= free");
  EXPECT_DEATH(ledger.lower(kA, mib(91)), "by <= found");
  EXPECT_DEATH(ledger.raise(kB, mib(1)), "no entry");
}

TEST(Ledger, AgreesWithASumOfAMap) {
  EXPECT_TRUE(rc::check("free is capacity less the sum", [] {
    Ledger ledger(mib(1000));
    std::map<JobId, Bytes> model;
    const int num_steps = *rc::gen::inRange(0, 60);
    for (int i = 0; i < num_steps; ++i) {
      const JobId job{*rc::gen::inRange<std::uint64_t>(1, 6)};
      const Bytes bytes = mib(*rc::gen::inRange(0, 400));
      if (!model.contains(job)) {
        ledger.attach(job, bytes);
        model[job] = bytes;
      } else if (*rc::gen::inRange(0, 4) == 0) {
        ledger.remove(job);
        model.erase(job);
      } else if (bytes <= model[job] && *rc::gen::arbitrary<bool>()) {
        ledger.lower(job, bytes);
        model[job] -= bytes;
      } else if (bytes <= ledger.free()) {
        ledger.raise(job, bytes);
        model[job] += bytes;
      }
      Bytes sum;
      for (const auto& [id, room] : model)
        sum += room;
      RC_ASSERT(ledger.free() == mib(1000) - sum);
      RC_ASSERT(ledger.rooms() == model);
      ledger.check_invariants();
    }
  }));
}

}  // namespace
}  // namespace gpushare::sched
