#include "csrc/sched/table/options.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/sched/coordinator.h"

namespace gpushare::sched {
namespace {

TEST(Options, DefaultsAreAllowed) { EXPECT_TRUE(make_table({}, Nanos{0}).has_value()); }

TEST(Options, RefusesWhatIsOutOfRange) {
  using Change = std::function<void(CoordinatorOptions&)>;
  const std::vector<Change> changes{
      [](auto& o) { o.device = ""; },
      [](auto& o) { o.device = "cuda"; },
      [](auto& o) { o.capacity = Bytes{0}; },
      [](auto& o) { o.policy = "lottery"; },
      [](auto& o) { o.min_quantum = Nanos{-1}; },
      [](auto& o) { o.max_wait = Nanos{0}; },
      [](auto& o) { o.switch_loss = 0; },
      [](auto& o) { o.switch_loss = 1; },
      [](auto& o) { o.class_floor = -0.01; },
      [](auto& o) { o.class_floor = 0.31; },
      [](auto& o) { o.memory_wait = Nanos{-1}; },
      [](auto& o) { o.gap_poll = Nanos{0}; },
      [](auto& o) { o.iteration_warning = Nanos{0}; },
      [](auto& o) { o.transfer_budget = Bytes{-1}; },
      [](auto& o) { o.recovery = Nanos{-1}; },
      [](auto& o) { o.host_budget.ram = Bytes{-1}; },
      [](auto& o) { o.num_lanes = 0; },
      [](auto& o) { o.users.others.share_limit = 1e-12; },
      [](auto& o) { o.users.others.share_limit = 1.01; },
      [](auto& o) { o.users.named[7].share_limit = -0.5; },
      [](auto& o) { o.num_lanes = kMaxLanes + 1; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CoordinatorOptions options;
    changes[i](options);
    const auto table = make_table(options, Nanos{0});
    ASSERT_FALSE(table.has_value()) << "change " << i;
    EXPECT_EQ(table.error().code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(Coordinator::create(options, Nanos{0}).has_value());
  }
}

TEST(Options, ARefusedShareLimitIsSaidWithWhatIsAllowed) {
  CoordinatorOptions options;
  options.users.named[7].name = "alice";
  options.users.named[7].share_limit = 0.001;
  EXPECT_EQ(make_table(options, Nanos{0}).error().message(),
            "alice: share_limit 0.001; allowed: 0.01 to 1, or 0 for none");
  for (const double share_limit : {0.0, 0.01, 1.0}) {
    options.users.named[7].share_limit = share_limit;
    EXPECT_TRUE(make_table(options, Nanos{0}).has_value()) << share_limit;
  }
}

}  // namespace
}  // namespace gpushare::sched
