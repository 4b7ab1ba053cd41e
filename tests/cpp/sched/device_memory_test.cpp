#include "csrc/sched/memory/device_memory.h"

#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/sched/table/options.h"

namespace gpushare::sched {
namespace {

using ::testing::HasSubstr;

constexpr JobId kFirst{1};
constexpr JobId kSecond{2};

// A device of 2000 MiB, of which 1800 are configured and 100 kept free.
class DeviceMemory : public ::testing::Test {
 protected:
  DeviceMemory() : table_(*make_table(options(), Nanos{0})), device_(table_.device) {
    device_.total = mib(2000);
  }
  static CoordinatorOptions options() {
    CoordinatorOptions options;
    options.capacity = mib(1800);
    options.reserve = mib(100);
    return options;
  }
  void add(JobId id, Bytes room, Bytes resident) {
    Job& job = table_.jobs.make(id);
    job.id = id;
    job.who.of.job = id;
    job.usage.resident = resident;
    device_.ledger.attach(id, room);
  }
  // `by` says that so much is free. Whether that changed anything.
  bool report(JobId by, Bytes free) {
    Step step(table_, Nanos{0}, false);
    on_device_free(step, table_.at(by), free);
    return !step.take().decisions.empty();
  }

  Table table_;
  Device& device_;
};

TEST_F(DeviceMemory, WhatIsNeitherFreeNorOursIsWithheld) {
  add(kFirst, mib(800), mib(800));
  EXPECT_TRUE(report(kFirst, mib(500)));
  EXPECT_EQ(device_.held_by_others, mib(700));
  EXPECT_EQ(device_.ledger.capacity(), mib(1200));
  EXPECT_EQ(device_.ledger.withheld(), mib(600));
  EXPECT_THAT(withheld_text(device_),
              HasSubstr("the device has 600.0 MiB less for jobs than the configured 1.8 GiB"));
  EXPECT_THAT(withheld_text(device_), HasSubstr("hold 700.0 MiB"));
  EXPECT_TRUE(report(kFirst, mib(1190)));
  EXPECT_EQ(device_.ledger.withheld(), Bytes{0});
  EXPECT_EQ(withheld_text(device_), "");
}

TEST_F(DeviceMemory, WhatIsKeptFreeAnywayIsNotWithheld) {
  add(kFirst, Bytes{0}, Bytes{0});
  EXPECT_FALSE(report(kFirst, mib(1900)));
  EXPECT_EQ(device_.held_by_others, mib(100));
  EXPECT_EQ(device_.ledger.withheld(), Bytes{0});
}

TEST_F(DeviceMemory, ASmallDifferenceChangesNothing) {
  add(kFirst, mib(800), mib(800));
  report(kFirst, mib(500));
  EXPECT_FALSE(report(kFirst, mib(500) + kDeviceHysteresis));
  EXPECT_FALSE(report(kFirst, mib(500) - kDeviceHysteresis));
  EXPECT_TRUE(report(kFirst, mib(500) + kDeviceHysteresis + Bytes{1}));
  EXPECT_TRUE(report(kFirst, mib(300)));
}

TEST_F(DeviceMemory, OtherJobsHaveBackedBetweenWhatTheySaidAndTheirRoom) {
  add(kFirst, mib(100), mib(100));
  add(kSecond, mib(800), mib(500));
  EXPECT_TRUE(report(kFirst, mib(400)));
  EXPECT_EQ(device_.held_by_others, mib(700)) << "1600 are used, 900 of them may be jobs'";
  EXPECT_FALSE(report(kFirst, mib(340))) << "760 at least, 1060 at most";
  EXPECT_FALSE(report(kFirst, mib(690))) << "310 at least, 710 at most";
  EXPECT_TRUE(report(kFirst, mib(800)));
  EXPECT_EQ(device_.held_by_others, mib(600));
}

TEST_F(DeviceMemory, WhatAJobIsAskedForMayBeGone) {
  add(kFirst, mib(100), mib(100));
  add(kSecond, mib(800), mib(800));
  table_.at(kSecond).room.revoke.emplace().bytes = mib(300);
  report(kFirst, mib(300));
  EXPECT_EQ(device_.held_by_others, mib(800));
  EXPECT_FALSE(report(kFirst, mib(600))) << "its 300 have gone";
  EXPECT_TRUE(report(kFirst, mib(700)));
}

TEST_F(DeviceMemory, MoreResidentThanRoomIsOldNews) {
  add(kFirst, Bytes{0}, Bytes{0});
  add(kSecond, mib(100), mib(800));
  report(kFirst, mib(1000));
  EXPECT_EQ(device_.held_by_others, mib(900));
}

TEST_F(DeviceMemory, APoolsSlotsMayBeBacked) {
  add(kFirst, Bytes{0}, Bytes{0});
  device_.ledger.raise_pools(mib(400));
  report(kFirst, mib(1200));
  EXPECT_EQ(device_.held_by_others, mib(400));
}

TEST_F(DeviceMemory, TheUnknownAndTheImpossibleChangeNothing) {
  add(kFirst, Bytes{0}, Bytes{0});
  EXPECT_FALSE(report(kFirst, Bytes{0}));
  EXPECT_FALSE(report(kFirst, mib(2001)));
  device_.total = Bytes{0};
  EXPECT_FALSE(report(kFirst, mib(1)));
}

TEST_F(DeviceMemory, ADeviceThatOthersHaveWhollyKeepsAChunk) {
  add(kFirst, mib(600), mib(600));
  table_.at(kFirst).usage.resident = Bytes{0};
  report(kFirst, Bytes{1});
  EXPECT_EQ(device_.ledger.capacity(), mib(2));
  EXPECT_EQ(device_.ledger.room(kFirst), mib(600));
}

// Jobs of a device say how large it is. 1900 MiB are what was configured and the reserve.
class DeviceTotal : public DeviceMemory {
 protected:
  void claim(JobId id, std::uint32_t user, Bytes total) {
    add(id, Bytes{0}, Bytes{0});
    table_.at(id).who.uid = user;
    table_.at(id).who.device_total = total;
    believe();
  }
  void believe() {
    Step step(table_, Nanos{0}, false);
    on_device_total(step);
  }
};

TEST_F(DeviceTotal, OneUsersLieDoesNotMakeItSmall) {
  claim(kFirst, 1, Bytes{1});
  EXPECT_EQ(device_.total, mib(1900));
  claim(kSecond, 2, mib(2000));
  EXPECT_EQ(device_.total, mib(1900));
}

TEST_F(DeviceTotal, WhatHonestJobsSayCounts) {
  claim(kFirst, 1, mib(2000));
  EXPECT_EQ(device_.total, mib(2000)) << "it may have more than was configured";
  claim(kSecond, 2, mib(2000));
  claim(JobId{3}, 3, Bytes{1});
  claim(JobId{4}, 3, mib(1 << 20));
  EXPECT_EQ(device_.total, mib(2000));
}

TEST_F(DeviceTotal, AWordEndsWithItsJob) {
  claim(kFirst, 1, mib(2000));
  report(kFirst, mib(500));
  EXPECT_GT(device_.ledger.withheld(), Bytes{0});
  device_.ledger.remove(kFirst);
  believe();
  EXPECT_EQ(device_.total, Bytes{0});
  EXPECT_EQ(device_.held_by_others, Bytes{0});
  EXPECT_EQ(device_.ledger.withheld(), Bytes{0});
}

}  // namespace
}  // namespace gpushare::sched
