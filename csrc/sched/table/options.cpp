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

#include <fmt/format.h>

#include "csrc/sched/job/ranges.h"
#include "csrc/wire/device_name.h"

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
  const Status status = check_ranges(
      {.weight = user.weight, .memory_limit = user.memory_limit, .share_limit = user.share_limit});
  return status.ok() ? status : Status(status.code(), fmt::format("{}: {}", who, status.message()));
}

Status check(const CoordinatorOptions& options) {
  if (!wire::is_device_name(options.device)) {
    return {StatusCode::kInvalidArgument,
            fmt::format("device is '{}', allowed is {}", options.device, wire::kDeviceNames)};
  }
  if (options.capacity <= Bytes{0}) {
    return {StatusCode::kInvalidArgument,
            fmt::format("capacity is {}, allowed is more than 0 B", to_string(options.capacity))};
  }
  if (options.reserve < Bytes{0}) {
    return {StatusCode::kInvalidArgument,
            fmt::format("reserve is {}, allowed is 0 B or more", to_string(options.reserve))};
  }
  if (options.transfer_budget < Bytes{0}) {
    return {StatusCode::kInvalidArgument,
            fmt::format("transfer_budget is {} a second, allowed is 0 B or more",
                        to_string(options.transfer_budget))};
  }
  if (options.host_budget.ram < Bytes{0} || options.host_budget.file < Bytes{0}) {
    return {StatusCode::kInvalidArgument,
            fmt::format("host_budget is {} in RAM and {} in a file, allowed is 0 B or more",
                        to_string(options.host_budget.ram), to_string(options.host_budget.file))};
  }
  if (!(options.switch_loss >= kMinSwitchLoss && options.switch_loss <= kMaxSwitchLoss)) {
    return {StatusCode::kInvalidArgument,
            fmt::format("switch_loss is {}, allowed are {} to {}", options.switch_loss,
                        kMinSwitchLoss, kMaxSwitchLoss)};
  }
  if (!(options.class_floor >= 0 && options.class_floor <= kMaxClassFloor)) {
    return {StatusCode::kInvalidArgument, fmt::format("class_floor is {}, allowed are 0 to {}",
                                                      options.class_floor, kMaxClassFloor)};
  }
  if (options.num_lanes < 1 || options.num_lanes > kMaxLanes) {
    return {StatusCode::kInvalidArgument,
            fmt::format("num_lanes is {}, allowed are 1 to {}", options.num_lanes, kMaxLanes)};
  }
  for (const auto& [uid, user] : options.users.named)
    GS_RETURN_IF_ERROR(check_user(options.users.label(uid), user));
  GS_RETURN_IF_ERROR(check_user("users", options.users.others));
  if (options.pack_lanes > kMaxLanes) {
    return {StatusCode::kInvalidArgument,
            fmt::format("pack_lanes is {}, allowed are 0 to {}", options.pack_lanes, kMaxLanes)};
  }
  GS_RETURN_IF_ERROR(check_time("min_quantum", options.min_quantum, Nanos{0}));
  GS_RETURN_IF_ERROR(check_time("max_wait", options.max_wait, millis(1)));
  GS_RETURN_IF_ERROR(check_time("memory_wait", options.memory_wait, Nanos{0}));
  GS_RETURN_IF_ERROR(check_time("gap_poll", options.gap_poll, micros(1)));
  GS_RETURN_IF_ERROR(check_time("iteration_warning", options.iteration_warning, millis(1)));
  return check_time("recovery", options.recovery, Nanos{0});
}

}  // namespace

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
