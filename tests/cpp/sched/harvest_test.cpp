#include "csrc/sched/time/harvest.h"

#include <gtest/gtest.h>

#include "csrc/sched/table/options.h"
#include "csrc/sched/table/table.h"

namespace gpushare::sched {
namespace {

Table make_priority_table() {
  CoordinatorOptions options;
  options.policy = "priority";
  return *make_table(options, Nanos{0});
}

struct HarvestWorld {
  HarvestWorld() : table(make_priority_table()), device(table.device) {
    serve.id = JobId{1};
    serve.settings.priority = wire::Priority::kGuaranteed;
    Job& train = table.jobs.make(JobId{2});
    train.id = JobId{2};
    train.settings.priority = wire::Priority::kOpportunistic;
    device.lanes.front().last_holder = train.id;
  }

  // It was away for a second, and had to wait for the part `harm` of it.
  void come_back(double harm) {
    const Nanos waited{static_cast<std::int64_t>(harm * 1e9)};
    serve.measured.gap_since = now;
    serve.place.waiting_since = now + seconds(1);
    now = serve.place.waiting_since + waited;
    harvesting().note_begin(table, device.lanes.front(), serve, now);
  }

  Table table;
  Device& device;
  Job serve;
  Nanos now;
};

TEST(Harvest, SteadyHarmAboveWhatIsAllowedLowersTheShare) {
  HarvestWorld world;
  for (int i = 0; i < 200; ++i)
    world.come_back(0.0125);
  EXPECT_LT(world.serve.measured.harvest_share, 0.1);
}

TEST(Harvest, SteadyHarmBelowItDoesNot) {
  HarvestWorld world;
  for (int i = 0; i < 200; ++i)
    world.come_back(0.0095);
  EXPECT_EQ(world.serve.measured.harvest_share, 1);
}

TEST(Harvest, TheShareComesBackWithReturnsThatDoNotWait) {
  HarvestWorld world;
  for (int i = 0; i < 200; ++i)
    world.come_back(0.05);
  const double lowered = world.serve.measured.harvest_share;
  for (int i = 0; i < 200; ++i)
    world.come_back(0);
  EXPECT_LT(lowered, 0.1);
  EXPECT_EQ(world.serve.measured.harvest_share, 1);
}

}  // namespace
}  // namespace gpushare::sched
