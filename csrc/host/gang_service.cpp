// The order of rows by service: the time that a gang has to run still, times those of its devices
// that others want too. For so long it keeps that many others waiting. Single jobs count in the same
// way, with one device.
//
// 1. Gangs are gone through in that order. One has its devices for itself unless a gang before it
//    has one of them, or a single job with less to run is there.
// 2. Such a gang opens its row as soon as the rows there are over. Its own row goes on.
// 3. A gang that has not all of its devices keeps none of them from gangs after it. So devices are
//    idle only if no gang that waits fits in. What then runs on them makes way after a slice.
//
// A gang that does not say how long it is counts with the time that it has had, as single jobs do.
// The same holds of one whose iterations were not seen yet: it has had nothing, so it is first for
// a row of a few steps, from which its length follows.
//
// source: shortest remaining service first, Gu et al., "Tiresias: A GPU Cluster Manager for
// Distributed Deep Learning" (NSDI 2019); rows: Ousterhout, "Scheduling Techniques for Concurrent
// Systems" (ICDCS 1982).
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "csrc/host/gang_rows.h"

namespace gpushare::host {

bool GangRows::is_single_before(std::size_t device, double service) const {
  return first_single_[device].has_value() && *first_single_[device] < service;
}

void GangRows::settle_by_service(Nanos now, RowOrders& orders) {
  std::vector<std::tuple<double, std::uint64_t, const GangName*>> line;
  std::vector<const GangName*> rows(options_.devices.size());    // that are there now
  std::vector<const GangName*> firsts(options_.devices.size());  // whom the device is for
  std::vector<std::size_t> users = singles_;  // of each device
  for (auto& [name, gang] : gangs_) {
    gang.is_first = false;
    const bool has_row = gang.state != State::kWaiting;
    if (!has_row && !wants_row(gang)) continue;
    for (const std::size_t device : gang.devices) {
      ++users[device];
      if (has_row) rows[device] = &name;
    }
  }
  for (const auto& [name, gang] : gangs_) {
    if (is_free(gang)) continue;
    const auto is_shared = [&](std::size_t device) { return users[device] > 1; };
    const auto num = std::count_if(gang.devices.begin(), gang.devices.end(), is_shared);
    line.emplace_back(gang.seconds_to_run() * static_cast<double>(std::max(num, decltype(num){1})),
                      gang.place, &name);
  }
  std::sort(line.begin(), line.end());
  const auto text = [&](const GangName& of, std::size_t device) {
    return fmt::format("the row of gang {} on {}", of.second, options_.devices[device]);
  };
  for (const auto& [service, place, name] : line) {
    Gang& gang = gangs_.at(*name);
    const bool is_waiting = gang.state == State::kWaiting;
    if (is_waiting) {
      if (auto why = obstacle(gang, now, orders)) {
        gang.waits_for = std::move(*why);
        continue;
      }
    }
    const auto find = [&](const auto& is) {
      return std::find_if(gang.devices.begin(), gang.devices.end(), is);
    };
    const auto before = find([&](std::size_t device) { return firsts[device] != nullptr; });
    const auto single =
        find([&, own = service](std::size_t device) { return is_single_before(device, own); });
    if (before != gang.devices.end()) {
      gang.waits_for = text(*firsts[*before], *before);
      continue;
    }
    if (single != gang.devices.end()) {
      gang.waits_for =
          fmt::format("a single job on {}, which has less to run", options_.devices[*single]);
      continue;
    }
    gang.is_first = true;
    for (const std::size_t device : gang.devices)
      firsts[device] = name;
    if (!is_waiting) continue;
    const auto row = find([&](std::size_t device) { return rows[device] != nullptr; });
    if (row != gang.devices.end()) {
      gang.waits_for = text(*rows[*row], *row);
      continue;
    }
    open(*name, gang, now, orders);
    for (const std::size_t device : gang.devices)
      rows[device] = name;
  }
}

bool GangRows::Gang::is_length_known() const {
  return !has([](const Rank& rank) { return !rank.seen.is_length_known; });
}

double GangRows::Gang::seconds_to_run() const {
  double longest = 0;
  for (const auto& [job, rank] : ranks)
    longest = std::max(longest, rank.seen.remaining);
  return longest;
}

}  // namespace gpushare::host
