#include "csrc/host/row_orders.h"

#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gpushare::host {
namespace {

class Recorder final : public RowMachines {
 public:
  void set_stop_at(JobId rank, std::uint64_t stop_at) override {
    said.push_back(fmt::format("{} stops at {}", rank.value, stop_at));
  }
  void set_row(JobId rank, std::optional<sched::GangRow> row) override {
    said.push_back(row.has_value()
                       ? fmt::format("{} until {}: {}", rank.value, row->until, row->why)
                       : fmt::format("{} is free", rank.value));
  }

  std::vector<std::string> said;
};

TEST(RowOrders, TellAllRanksWhereToStopBeforeAnyMayBegin) {
  Recorder recorder;
  carry_out({{.job = JobId{1}, .is_open = true, .stop_at = 7, .why = "open"},
             {.job = JobId{2}, .is_open = false, .stop_at = 7, .why = "waits"},
             {.job = JobId{3}, .is_free = true}},
            recorder);
  EXPECT_EQ(recorder.said,
            (std::vector<std::string>{"1 stops at 7", "2 stops at 7", "1 until 7: open",
                                      "2 until 0: waits", "3 is free"}));
}

}  // namespace
}  // namespace gpushare::host
