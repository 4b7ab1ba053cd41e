// Decides whose row is opened next, where the policy goes by turns. All do but `srtf` and
// `srtf+pack` (gang_service.cpp).
//
// Gangs have rows in the order of the policy, and single jobs of a device go before a row where the
// policy puts them first, for a slice or longer (party.h). A gang that has to wait for another's
// row keeps its devices from gangs after it, so a large gang is not passed over for ever. One that
// waits for single jobs does not: its turn comes while they run, and then the rows in its way end.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/host/gang_rows.h"

namespace gpushare::host {
namespace {

// How long ranks that want a lease wait for those that do not: if nobody else waits for the
// devices, and otherwise.
constexpr Nanos kComingTogether = millis(200);
constexpr Nanos kMostComing = seconds(5);
// How often a gang at a limit on time is looked at.
constexpr Nanos kAtLimit = millis(100);

}  // namespace

void GangRows::settle_waiting(Nanos now, RowOrders& orders) {
  if (!contest_.is_by_service()) return settle_by_turns(now, orders);
  if (is_line_new_ || (line_due_.has_value() && now >= *line_due_)) {
    is_line_new_ = false;
    RowOrders found;
    settle_by_service(now, found);
    line_due_ = found.look_at;
    orders.said.insert(orders.said.end(), found.said.begin(), found.said.end());
  }
  if (line_due_.has_value()) orders.look_by(*line_due_);
}

void GangRows::settle_by_turns(Nanos now, RowOrders& orders) {
  is_line_new_ = true;  // what each has had changes with time
  std::vector<std::pair<const GangName*, Gang*>> line;
  std::map<std::size_t, const GangName*> taken;
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kWaiting) {
      if (!is_free(gang)) line.emplace_back(&name, &gang);
      continue;
    }
    for (const std::size_t device : gang.party.devices)
      taken.emplace(device, &name);
  }
  std::sort(line.begin(), line.end(), [&](const auto& first, const auto& second) {
    return contest_.goes_before(first.second->party, second.second->party);
  });
  for (const auto& [name, gang] : line) {
    gang->waits_for = why_not(*gang, taken, now, orders);
    if (gang->waits_for.empty()) open(*name, *gang, now, orders);
  }
}

// What the gang waits for; "": its row is to be opened. Adds the devices to `taken` that it keeps
// from gangs after it.
std::string GangRows::why_not(const Gang& gang, Taken& taken, Nanos now, RowOrders& orders) {
  if (auto why = obstacle(gang, now, orders)) return std::move(*why);
  const std::vector<std::size_t>& devices = gang.party.devices;
  const auto busy = std::find_if(devices.begin(), devices.end(),
                                 [&](std::size_t each) { return taken.contains(each); });
  if (busy == devices.end() && let_singles_first(gang, now, orders))
    return "single jobs on its devices, which have their turns before its next row";
  std::string why;
  if (busy != devices.end()) why = text_of_row(*taken.at(*busy), *busy);
  for (const std::size_t device : devices)
    taken.emplace(device, &gang_of_.at(gang.ranks.begin()->first));
  return why;
}

// Whether single jobs have one of the gang's devices before its next row.
bool GangRows::let_singles_first(const Gang& gang, Nanos now, RowOrders& orders) {
  bool is_any = false;
  for (const std::size_t device : gang.party.devices) {
    Singles& singles = singles_[device];
    if (!singles.party.wants) continue;
    // A turn that has begun lasts for a slice, even if the policy puts the gang first meanwhile.
    // Otherwise each look could end it.
    const bool is_first = contest_.goes_before(singles.party, gang.party);
    if (!is_first && now >= singles.turn_until) continue;
    is_any = true;
    if (is_first && !std::exchange(singles.have_turn, true)) singles.turn_until = now + slice(gang);
    const Nanos rest = contest_.time_before(singles.party, gang.party, parties_).value_or(Nanos{});
    const Nanos until = std::max(singles.turn_until, now + rest);
    if (until > now) orders.look_by(until);
  }
  return is_any;
}

// Why no row may be opened for the gang whatever others do.
std::optional<std::string> GangRows::obstacle(const Gang& gang, Nanos now, RowOrders& orders) {
  if (gang.has([](const Rank& rank) { return !rank.seen.is_known; })) return "a rank to come back";
  if (gang.has([](const Rank& rank) { return rank.seen.is_held_back; }))
    return "a rank that is paused or suspended";
  if (gang.party.setback == sched::Setback::kBarred) {
    orders.look_by(now + kAtLimit);
    return "a rank at its limit of the device's time";
  }
  const std::uint32_t ranks = gang.ranks.begin()->second.seen.ranks;
  if (!gang.was_complete && now < gang.since + kMissing) {
    orders.look_by(gang.since + kMissing);
    return fmt::format("its other ranks: {} of {} are here", gang.ranks.size(), ranks);
  }
  std::size_t num = 0;
  Nanos first = now;
  for (const auto& [job, rank] : gang.ranks) {
    if (!rank.seen.wants) continue;
    ++num;
    first = std::min(first, rank.wants_since);
  }
  const Nanos due = first + (is_wanted_by_others(gang) ? kMostComing : kComingTogether);
  if (num == gang.ranks.size() || (num > 0 && now >= due)) return std::nullopt;
  if (num > 0) orders.look_by(due);
  return fmt::format("its other ranks: {} of {} want a lease", num, gang.ranks.size());
}

std::string GangRows::text_of_row(const GangName& of, std::size_t device) const {
  return fmt::format("the row of gang {} on {}", of.second, options_.devices[device]);
}

}  // namespace gpushare::host
