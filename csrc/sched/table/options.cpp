// What a coordinator may be made with. Every setting is held against its range once, here, so that
// no rule has to think about a negative budget or a loss of 100 %. Ranges are wide: they exclude
// what cannot be meant, or would make sums of times overflow.
//
// Lanes are opened as far as the policy wants, and one more for each lane whose holder is
// suspended, since that lane is of no use meanwhile.
#include "csrc/sched/table/options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/sched/job/ranges.h"
#include "csrc/wire/device_name.h"
#include "csrc/wire/job_settings.h"

namespace gpushare::sched {
namespace {

// Long enough for any use, short enough that sums of times do not overflow.
constexpr Nanos kMaxTime = seconds(1'000'000'000);
constexpr double kMinSwitchLoss = 0.0001;
constexpr double kMaxSwitchLoss = 0.5;
// Three classes may wait below one.
constexpr double kMaxClassFloor = 0.3;

Status check_time(const char* what, Nanos time, Nanos least) {
  if (time >= least && time <= kMaxTime) return {};
  return {StatusCode::kInvalidArgument,
          fmt::format("{} is {}, allowed are {} to {}", what, to_string(time), to_string(least),
                      to_string(kMaxTime))};
}

Status check_user(const std::string& who, const UserOptions& user) {
  const Status status = check_ranges(wire::JobSettings{
      .weight = user.weight, .memory_limit = user.memory_limit, .share_limit = user.share_limit});
  return status.ok() ? status : Status(status.code(), fmt::format("{}: {}", who, status.message()));
}

// One option that has a range: what it is, and what is allowed.
struct OptionLimits {
  bool holds = false;
  const char* name;
  std::string is;
  std::string allowed;
};

template <typename Number>
bool is_within(Number number, Number least, Number most) {
  return number >= least && number <= most;
}

// All options that are no times. They are checked in this order, and the first one that is wrong is
// said.
std::vector<OptionLimits> option_limits(const CoordinatorOptions& options) {
  const HostBytes& host = options.host_budget;
  const std::string some_or_none = "allowed is 0 B or more";
  return {
      {wire::is_device_name(options.device), "device", fmt::format("'{}'", options.device),
       fmt::format("allowed is {}", wire::kDeviceNames)},
      {options.capacity > Bytes{0}, "capacity", to_string(options.capacity),
       "allowed is more than 0 B"},
      {options.reserve >= Bytes{0}, "reserve", to_string(options.reserve), some_or_none},
      {options.transfer_budget >= Bytes{0}, "transfer_budget",
       fmt::format("{} a second", to_string(options.transfer_budget)), some_or_none},
      {std::min(host.ram, host.file) >= Bytes{0}, "host_budget",
       fmt::format("{} in RAM and {} in a file", to_string(host.ram), to_string(host.file)),
       some_or_none},
      {is_within(options.switch_loss, kMinSwitchLoss, kMaxSwitchLoss), "switch_loss",
       fmt::format("{}", options.switch_loss),
       fmt::format("allowed are {} to {}", kMinSwitchLoss, kMaxSwitchLoss)},
      {is_within(options.class_floor, 0.0, kMaxClassFloor), "class_floor",
       fmt::format("{}", options.class_floor), fmt::format("allowed are 0 to {}", kMaxClassFloor)},
      {is_within(options.num_lanes, 1U, kMaxLanes), "num_lanes",
       fmt::format("{}", options.num_lanes), fmt::format("allowed are 1 to {}", kMaxLanes)},
      {options.pack_lanes <= kMaxLanes, "pack_lanes", fmt::format("{}", options.pack_lanes),
       fmt::format("allowed are 0 to {}", kMaxLanes)},
  };
}

Status check(const CoordinatorOptions& options) {
  for (const OptionLimits& limits : option_limits(options)) {
    if (limits.holds) continue;
    return {StatusCode::kInvalidArgument,
            fmt::format("{} is {}, {}", limits.name, limits.is, limits.allowed)};
  }
  for (const auto& [uid, user] : options.users.named)
    GS_RETURN_IF_ERROR(check_user(options.users.label(uid), user));
  GS_RETURN_IF_ERROR(check_user("users", options.users.others));
  GS_RETURN_IF_ERROR(check_time("min_quantum", options.min_quantum, Nanos{0}));
  GS_RETURN_IF_ERROR(check_time("max_wait", options.max_wait, millis(1)));
  GS_RETURN_IF_ERROR(check_time("memory_wait", options.memory_wait, Nanos{0}));
  GS_RETURN_IF_ERROR(check_time("gap_poll", options.gap_poll, micros(1)));
  GS_RETURN_IF_ERROR(check_time("iteration_warning", options.iteration_warning, millis(1)));
  return check_time("recovery", options.recovery, Nanos{0});
}

}  // namespace

// Lanes are opened only here. They are closed when nobody uses them any more (lane_moves.cpp).
void open_lanes(Table& table, Nanos now) {
  Device& device = table.device;
  const auto num_suspended = static_cast<std::size_t>(
      std::count_if(device.lanes.begin(), device.lanes.end(), is_lane_suspended));
  while (device.lanes.size() < table.num_open_lanes() + num_suspended) {
    const LaneId id{static_cast<std::uint32_t>(device.lanes.size())};
    device.lanes.emplace_back(now);
    device.lanes.back().id = id;
    if (id == LaneId{0}) continue;
    // The lane may be opened in the place of another one, so its recent time is the device's.
    device.lanes.back().busy = device.lanes.front().busy;
    device.lanes.back().busy.turn(false, now);
  }
}

// Known pids are waited for from now on: the coordinator may have been started again.
Result<Table> make_table(const CoordinatorOptions& options, Nanos now) {
  const Status status = check(options);
  if (!status.ok()) return fail(status);
  auto policy = make_policy(options.policy);
  if (!policy.has_value()) return fail(policy.error());
  Table table(options, std::move(*policy));
  table.expected =
      std::set<std::int32_t>(options.expected_pids.begin(), options.expected_pids.end());
  table.recovery_ends = now + options.recovery;
  open_lanes(table, now);
  return table;
}

}  // namespace gpushare::sched
