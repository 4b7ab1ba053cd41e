#include "csrc/sched/plans/placement.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace gpushare::sched {
namespace {

using Lanes = std::vector<std::uint32_t>;

PlacedJob job(Bytes persistent, Bytes ephemeral, std::uint32_t lane = 0) {
  return {.id = {},
          .sizes = Sizes{persistent, ephemeral},
          .in_lane = LaneId{lane},
          .placed_in = LaneId{lane},
          .is_holder = false,
          .held = {}};
}

PlacedJob unknown(std::uint32_t lane = 0) {
  PlacedJob placed = job({}, {}, lane);
  placed.sizes.reset();
  return placed;
}

PlacedJob holder(PlacedJob placed) {
  placed.is_holder = true;
  return placed;
}

Lanes lanes_of(const Placement& placement) {
  Lanes lanes;
  for (const LaneId lane : placement.lanes)
    lanes.push_back(lane.value);
  return lanes;
}

Lanes placed(const std::vector<PlacedJob>& jobs, std::size_t num_lanes, Bytes capacity) {
  return lanes_of(place(jobs, num_lanes, num_lanes, capacity));
}

TEST(Placement, TwoThatFitHaveALaneEach) {
  const std::vector<PlacedJob> jobs{job(mib(100), mib(300)), job(mib(100), mib(400))};
  const Placement placement = place(jobs, 2, 2, mib(900));
  EXPECT_EQ(lanes_of(placement), (Lanes{0, 1}));
  EXPECT_EQ(placement.num_used, 2U);
  EXPECT_EQ(placement.needed, mib(900)) << "exactly the capacity fits";
  EXPECT_EQ(placed(jobs, 2, mib(900) - Bytes{1}), (Lanes{0, 0})) << "a byte less does not";
  EXPECT_EQ(placed(jobs, 1, mib(900)), (Lanes{0, 0}));
}

TEST(Placement, ThoseWithMuchEphemeralMemoryShareALane) {
  const std::vector<PlacedJob> jobs{job({}, mib(300)), job({}, mib(100)), job({}, mib(300)),
                                    job({}, mib(100))};
  EXPECT_EQ(placed(jobs, 2, mib(400)), (Lanes{0, 1, 0, 1}));
  EXPECT_EQ(placed(jobs, 3, mib(500)), (Lanes{0, 2, 0, 1}));
  EXPECT_EQ(placed(jobs, 4, mib(800)), (Lanes{0, 2, 3, 1}));
}

TEST(Placement, NobodyIsMovedWithoutAReason) {
  const std::vector<PlacedJob> jobs{job({}, mib(300), 1), job({}, mib(100), 1),
                                    job({}, mib(300), 0), job({}, mib(100), 0)};
  EXPECT_EQ(placed(jobs, 2, mib(600)), (Lanes{1, 1, 0, 0})) << "it fits as it is";
  EXPECT_EQ(placed(jobs, 2, mib(599)), (Lanes{0, 1, 0, 1})) << "and here it does not";
  EXPECT_EQ(placed({job({}, mib(1), 1), job({}, mib(1), 1), job({}, mib(1), 0)}, 2, mib(9)),
            (Lanes{1, 1, 0}));
}

TEST(Placement, OnlyThoseWithoutALeaseAreMoved) {
  EXPECT_EQ(placed({job({}, mib(9)), holder(job({}, mib(1)))}, 2, mib(10)), (Lanes{1, 0}));
  EXPECT_EQ(placed({holder(job({}, mib(9))), job({}, mib(1))}, 2, mib(10)), (Lanes{0, 1}));
}

TEST(Placement, WhereTheyFitNoLongerAHolderIsToComeToTheOthersLane) {
  PlacedJob second = holder(job({}, mib(60), 1));
  const std::vector<PlacedJob> jobs{holder(job({}, mib(50))), second, job({}, mib(50))};
  EXPECT_EQ(placed(jobs, 2, mib(110)), (Lanes{0, 1, 0}));
  EXPECT_EQ(placed(jobs, 2, mib(109)), (Lanes{0, 0, 0}));
  // Its lease is still open when they fit again.
  second.placed_in = LaneId{0};
  EXPECT_EQ(placed({jobs[0], second, jobs[2]}, 2, mib(110)), (Lanes{0, 1, 0}));
}

TEST(Placement, OneOfUnknownSizesKeepsWhatItHasAndIsTakenForTheLargest) {
  PlacedJob new_one = unknown();
  new_one.held = mib(30);
  const std::vector<PlacedJob> jobs{holder(job(mib(10), mib(40))), new_one};
  EXPECT_EQ(placed(jobs, 2, mib(120)), (Lanes{0, 1}));
  EXPECT_EQ(placed(jobs, 2, mib(119)), (Lanes{0, 0}));
  // It runs, and its memory grows: it stays.
  new_one.in_lane = new_one.placed_in = LaneId{1};
  new_one.held = mib(70);
  EXPECT_EQ(placed({jobs[0], holder(new_one)}, 2, mib(120)), (Lanes{0, 1}));
}

TEST(Placement, ThoseOfUnknownSizesShareALane) {
  EXPECT_EQ(placed({unknown(), unknown(1)}, 2, mib(900)), (Lanes{0, 0}));
  EXPECT_EQ(placed({unknown(), holder(unknown(1))}, 2, mib(900)), (Lanes{1, 1}));
  EXPECT_EQ(placed({job({}, mib(1)), unknown(), unknown(2)}, 3, mib(900)), (Lanes{0, 1, 1}));
  // Where one more does not fit, with the fewest others.
  const std::vector<PlacedJob> jobs{job({}, mib(5)), job({}, mib(5), 1), job({}, mib(5), 1),
                                    unknown(1)};
  EXPECT_EQ(placed(jobs, 3, mib(10)), (Lanes{0, 1, 1, 0}));
}

std::vector<PlacedJob> any_jobs(std::size_t num_lanes, bool is_with_holders) {
  std::vector<PlacedJob> jobs;
  std::set<std::uint32_t> held;
  for (int i = *rc::gen::inRange(0, 8); i > 0; --i) {
    const auto any_lane = rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(num_lanes));
    PlacedJob one = job(mib(*rc::gen::inRange(0, 20)), mib(*rc::gen::inRange(0, 50)),
                        is_with_holders ? *any_lane : 0);
    if (is_with_holders) one.placed_in = LaneId{*any_lane};
    if (is_with_holders && *rc::gen::inRange(0, 5) == 0) one.sizes.reset();
    one.held = mib(*rc::gen::inRange(0, 50));
    one.is_holder =
        is_with_holders && *rc::gen::arbitrary<bool>() && held.insert(one.in_lane.value).second;
    jobs.push_back(one);
  }
  return jobs;
}

Bytes needed_by(const std::vector<PlacedJob>& jobs, const std::vector<LaneId>& lanes) {
  Bytes sum;
  std::map<LaneId, Bytes> largest;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].sizes.has_value()) continue;
    sum += jobs[i].sizes->persistent;
    largest[lanes[i]] = std::max(largest[lanes[i]], jobs[i].sizes->ephemeral);
  }
  for (const auto& [lane, bytes] : largest)
    sum += bytes;
  return sum;
}

TEST(Placement, AJobFitsInAnotherLaneByWhatThatNeedsThen) {
  PlacedJobs jobs{.jobs = {job(mib(100), mib(300), 0), job(mib(100), mib(200), 0),
                           job(mib(100), mib(50), 1), unknown(1)},
                  .capacity = mib(800)};
  for (std::size_t i = 0; i < jobs.jobs.size(); ++i)
    jobs.jobs[i].id = JobId{i + 1};
  // 300 persistent, and 300 + 200 in the lanes; then 200 + 300.
  EXPECT_TRUE(fits_in(jobs, 2, JobId{2}, LaneId{1}));
  EXPECT_TRUE(fits_in(jobs, 2, JobId{1}, LaneId{1}));
  jobs.capacity -= Bytes{1};
  EXPECT_FALSE(fits_in(jobs, 2, JobId{2}, LaneId{1})) << "a byte less";
  EXPECT_FALSE(fits_in(jobs, 2, JobId{1}, LaneId{1}));
  EXPECT_TRUE(fits_in(jobs, 2, JobId{3}, LaneId{0})) << "it takes the lane's largest";
  EXPECT_FALSE(fits_in(jobs, 2, JobId{4}, LaneId{0})) << "of unknown sizes";
  EXPECT_FALSE(fits_in(jobs, 2, JobId{5}, LaneId{0})) << "takes no turns";
}

TEST(Placement, WhateverTheJobsTheyFitOrShareALaneAndStayThere) {
  EXPECT_TRUE(rc::check("several lanes are used only where that fits, and planning again", [] {
    const auto num_lanes = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
    const Bytes capacity = mib(*rc::gen::inRange(1, 300));
    std::vector<PlacedJob> jobs = any_jobs(num_lanes, true);
    const Placement first = place(jobs, num_lanes, num_lanes, capacity);
    RC_ASSERT(first.lanes.size() == jobs.size());
    RC_ASSERT(first.num_used <= num_lanes);
    RC_ASSERT(first.needed == needed_by(jobs, first.lanes));
    if (first.num_used > 1) RC_ASSERT(first.needed <= capacity);
    std::set<LaneId> of_unknown;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (!jobs[i].sizes.has_value()) of_unknown.insert(first.lanes[i]);
      jobs[i].placed_in = first.lanes[i];
      if (!jobs[i].is_holder) jobs[i].in_lane = first.lanes[i];
    }
    RC_ASSERT(of_unknown.size() <= 1U);
    RC_ASSERT(place(jobs, num_lanes, num_lanes, capacity).lanes == first.lanes);
  }));
}

// The largest, and beside it the smallest: less is not needed for so many lanes.
std::size_t most_that_fit(std::vector<PlacedJob> jobs, std::size_t num_lanes, Bytes capacity) {
  std::sort(jobs.begin(), jobs.end(), [](const PlacedJob& a, const PlacedJob& b) {
    return a.sizes->ephemeral < b.sizes->ephemeral;
  });
  Bytes sum;
  for (const PlacedJob& each : jobs)
    sum += each.sizes->persistent;
  sum += jobs.back().sizes->ephemeral;
  std::size_t num = 1;
  for (; num < std::min(num_lanes, jobs.size()); ++num) {
    sum += jobs[num - 1].sizes->ephemeral;
    if (sum > capacity) break;
  }
  return num;
}

TEST(Placement, FromOneLaneAsManyAreUsedAsFit) {
  EXPECT_TRUE(rc::check("as many lanes as fit", [] {
    const auto num_lanes = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
    const Bytes capacity = mib(*rc::gen::inRange(1, 300));
    const std::vector<PlacedJob> jobs = any_jobs(num_lanes, false);
    RC_PRE(!jobs.empty());
    const Placement placement = place(jobs, num_lanes, num_lanes, capacity);
    RC_ASSERT(placement.num_used == most_that_fit(jobs, num_lanes, capacity));
  }));
}

}  // namespace
}  // namespace gpushare::sched
