#include "csrc/host/device_placement.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::host {
namespace {

DeviceLoad device(Bytes capacity, const std::vector<sched::Sizes>& jobs = {}) {
  DeviceLoad load(capacity);
  for (const sched::Sizes& job : jobs)
    load.add({job});
  return load;
}

TEST(DevicePlacement, TakesAnEmptyDevice) {
  const std::vector<DeviceLoad> devices{device(gib(1), {{mib(10), mib(10)}}), device(gib(1))};
  EXPECT_EQ(choose_device(devices, {{mib(10), mib(10)}}), 1U);
}

// A turn of 10 s in which 200 MiB move costs 2 % of the time; a second job costs half of it.
TEST(DevicePlacement, MovesMemorySoonerThanItWaitsForOneMoreJob) {
  const std::vector<DeviceLoad> devices{device(gib(1), {{mib(900), mib(10)}}),
                                        device(gib(1), {{mib(10), mib(10)}, {mib(10), mib(10)}})};
  EXPECT_EQ(choose_device(devices, {{mib(200), mib(100)}}), 0U);
}

TEST(DevicePlacement, WaitsSoonerThanItMovesMemoryThatTakesLonger) {
  const std::vector<DeviceLoad> devices{device(gib(40), {{gib(39), mib(10)}}),
                                        device(gib(40), {{mib(10), mib(10)}, {mib(10), mib(10)}})};
  EXPECT_EQ(choose_device(devices, {{gib(30), mib(100)}}), 1U);
}

TEST(DevicePlacement, OfDevicesWithAsManyJobsOneWithoutMovingIsTaken) {
  const std::vector<DeviceLoad> devices{device(gib(1), {{mib(900), mib(10)}}),
                                        device(gib(1), {{mib(100), mib(10)}})};
  EXPECT_EQ(choose_device(devices, {{mib(200), mib(100)}}), 1U);
}

TEST(DevicePlacement, GoesWhereTheWorkIsDoneFirst) {
  std::vector<DeviceLoad> devices{device(gib(1)), device(gib(1))};
  devices[0].add({.sizes = {}, .work = JobWork{seconds(100), seconds(100)}});
  devices[1].add({.sizes = {}, .work = JobWork{seconds(20), seconds(20)}});
  devices[1].add({.sizes = {}, .work = JobWork{seconds(30), seconds(30)}});
  EXPECT_EQ(choose_device(devices, {}), 1U);
  devices[1].remove({.sizes = {}, .work = JobWork{seconds(30), seconds(30)}});
  devices[1].add({.sizes = {}, .work = JobWork{seconds(300), seconds(300)}});
  EXPECT_EQ(choose_device(devices, {}), 0U);
}

// Of 100 s and 20 s a job has 60 s on average.
TEST(DevicePlacement, TakesUnknownWorkToBeAsTheKnownIsOnAverage) {
  std::vector<DeviceLoad> devices{device(gib(1)), device(gib(1))};
  devices[0].add({.sizes = {}, .work = JobWork{seconds(100), seconds(100)}});
  devices[1].add({.sizes = {}, .work = JobWork{seconds(20), seconds(20)}});
  devices[1].add({});
  EXPECT_EQ(choose_device(devices, {}), 1U);
  devices[1].add({});
  EXPECT_EQ(choose_device(devices, {}), 0U);
}

// A job of 100 s that is nearly done, and one that has just come and is as long, for all one knows.
TEST(DevicePlacement, TakesUnknownWorkToBeAsKnownJobsWereAtTheirBegin) {
  std::vector<DeviceLoad> devices{device(gib(1)), device(gib(1))};
  devices[0].add({});
  devices[1].add({.sizes = {}, .work = JobWork{seconds(20), seconds(100)}});
  devices[1].add({.sizes = {}, .work = JobWork{seconds(20), seconds(100)}});
  EXPECT_EQ(choose_device(devices, {}), 1U);
}

TEST(DevicePlacement, MovesLeastWhereAllMustMove) {
  const std::vector<DeviceLoad> devices{device(gib(1), {{mib(900), mib(0)}}),
                                        device(gib(1), {{mib(700), mib(100)}})};
  EXPECT_EQ(choose_device(devices, {{mib(500), mib(100)}}), 1U);
  EXPECT_EQ(choose_device(devices, {{mib(500), mib(400)}}), 1U);
}

// Jobs take turns: the largest ephemeral memory is needed once.
TEST(DevicePlacement, CountsOnlyTheLargestEphemeralMemory) {
  DeviceLoad load = device(gib(1), {{mib(100), mib(500)}, {mib(100), mib(300)}});
  EXPECT_EQ(load.excess_with({mib(100), mib(400)}), mib(800) - gib(1));
  load.remove({{mib(100), mib(500)}});
  EXPECT_EQ(load.excess_with({mib(100), mib(200)}), mib(500) - gib(1));
  EXPECT_EQ(load.num_jobs(), 1U);
}

TEST(DevicePlacement, EachProcessHasAContext) {
  DeviceLoad load(gib(1), mib(100));
  load.add({{mib(100), mib(100)}});
  EXPECT_EQ(load.excess_with({mib(100), mib(100)}), mib(500) - gib(1));
  EXPECT_TRUE(load.fits_alone({mib(900), mib(24)}));
  EXPECT_FALSE(load.fits_alone({mib(900), mib(25)}));
}

TEST(DevicePlacement, FillsDevicesOfOneLoadFromTheFirst) {
  const std::vector<DeviceLoad> devices{device(gib(1)), device(gib(1))};
  EXPECT_EQ(choose_device(devices, {{mib(10), mib(10)}}), 0U);
}

sched::Sizes any_sizes() {
  return {mib(*rc::gen::inRange(0, 1000)), mib(*rc::gen::inRange(0, 1000))};
}

TEST(DevicePlacementProperty, NoDeviceItCannotFitWhileThereIsAnother) {
  EXPECT_TRUE(rc::check("a job that fits one device goes to one that it fits", [] {
    std::vector<DeviceLoad> devices;
    const int num_devices = *rc::gen::inRange(1, 6);
    for (int i = 0; i < num_devices; ++i) {
      std::vector<sched::Sizes> jobs(*rc::gen::inRange<std::size_t>(0, 5));
      std::generate(jobs.begin(), jobs.end(), any_sizes);
      devices.push_back(device(mib(*rc::gen::inRange(100, 2000)), jobs));
    }
    const sched::Sizes job = any_sizes();
    const std::size_t chosen = choose_device(devices, {job});
    RC_ASSERT(chosen < devices.size());
    RC_ASSERT(choose_device(devices, {job}) == chosen);
    const auto fits = [&](const DeviceLoad& load) { return load.fits_alone(job); };
    if (std::any_of(devices.begin(), devices.end(), fits)) {
      RC_ASSERT(fits(devices[chosen]));
      // And nowhere that it fits would all be done sooner.
      for (const DeviceLoad& load : devices) {
        if (!fits(load)) continue;
        RC_ASSERT(load.seconds_with({job}, seconds(1)) >=
                  devices[chosen].seconds_with({job}, seconds(1)));
      }
    }
  }));
}

// Group 0 to 3 has a job, and group 4 to 7 none. A group of two begins at an even number.
TEST(DevicePlacement, AGangGoesToTheGroupWhoseWorstDeviceIsBest) {
  std::vector<DeviceLoad> devices(8, device(gib(1)));
  devices[1].add({{mib(10), mib(10)}});
  const JobLoad job{{mib(10), mib(10)}};
  EXPECT_EQ(choose_devices(devices, job, 4), (std::vector<std::size_t>{4, 5, 6, 7}));
  EXPECT_EQ(choose_devices(devices, job, 2), (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(choose_devices(devices, job, 8).size(), 8U);
}

// Groups of gangs lie in each other or apart, however many devices there are.
TEST(DevicePlacement, AGangHasAsManyDevicesAsItNeedsSideBySide) {
  const std::vector<DeviceLoad> devices(7, device(gib(1)));
  for (std::size_t num = 1; num <= devices.size(); ++num) {
    const std::vector<std::size_t> chosen = choose_devices(devices, {{mib(10), mib(10)}}, num);
    ASSERT_EQ(chosen.size(), num);
    for (std::size_t i = 0; i < num; ++i)
      EXPECT_EQ(chosen[i], chosen.front() + i);
    EXPECT_LT(chosen.back(), devices.size());
  }
}

}  // namespace
}  // namespace gpushare::host
