// Decides which gang's row is open on which devices, and until which step.
//
// Gangs have rows in the order of the policy, and single jobs of a device go before a row where the
// policy puts them first, for a slice or longer (party.h). A gang that has to wait for another's
// row keeps its devices from gangs after it, so a large gang is not passed over for ever. One that
// waits for single jobs does not: its turn comes while they run, and then the rows in its way end.
// Two open rows never share a device.
//
// A row's number of steps is what the slowest rank makes in a slice. The slice is long enough that
// switching costs no more than switch_loss, as for single jobs. The row is extended before its end
// while nobody waits for the devices who would go first then, so a gang alone never stops.
//
// A rank that has reached stop_at has ended its lease by itself. In programs whose ranks step
// together no rank can then be inside a step that needs it. What may go wrong is decided in
// gang_trouble.cpp.
#include "csrc/host/gang_rows.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sched/plans/quantum.h"

namespace gpushare::host {
namespace {

// In a row whose iterations are not timed yet.
constexpr std::uint64_t kFirstSteps = 4;
// How long ranks that want a lease wait for those that do not: if nobody else waits for the
// devices, and otherwise.
constexpr Nanos kComingTogether = millis(200);
constexpr Nanos kMostComing = seconds(5);
// How often a gang at a limit on time is looked at.
constexpr Nanos kAtLimit = millis(100);
// How often an open row is looked at, at most.
constexpr Nanos kLook = millis(10);

template <typename Ranks>
std::set<std::size_t> devices_of(const Ranks& ranks) {
  std::set<std::size_t> devices;
  for (const auto& [job, rank] : ranks)
    devices.insert(rank.seen.device);
  return devices;
}

}  // namespace

std::uint64_t GangRows::Rank::steps() const {
  const auto count = static_cast<std::int64_t>(seen.steps) + shift;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
}

GangRows::GangRows(RowOptions options)
    : options_(std::move(options)),
      singles_(options_.devices.size()),
      contest_(options_.policy, options_.class_floor) {}

void GangRows::name_device(std::size_t device, std::string name) {
  GS_CHECK(device <= options_.devices.size());
  options_.devices.resize(std::max(options_.devices.size(), device + 1));
  options_.devices[device] = std::move(name);
  singles_.resize(options_.devices.size());
  singles_[device] = {};
}

// A rank that comes to a gang with an open row joins it. One that changes its gang leaves the
// other.
void GangRows::report(const RankReport& report, Nanos now) {
  GS_CHECK(report.device < options_.devices.size());
  const auto before = gang_of_.find(report.job);
  if (before != gang_of_.end() && before->second != report.gang) forget(report.job);
  gang_of_[report.job] = report.gang;
  auto [found, is_new] = gangs_.try_emplace(report.gang);
  Gang& gang = found->second;
  if (is_new) {
    gang.since = gang.moved_at = gang.waits_since = now;
  }
  Rank& rank = gang.ranks[report.job];
  if (report.wants && !rank.seen.wants) rank.wants_since = now;
  const auto standing = [](const RankReport& of) {
    return std::tuple(of.steps, of.wants, of.has_lease, of.is_known);
  };
  if (standing(rank.seen) != standing(report)) gang.moved_at = now;
  // It comes to a row that was agreed on with a coordinator before, and may know a later end.
  const bool is_first = report.is_known && !rank.is_told;
  if (is_first && gang.state == State::kOpen) gang.stop_at = std::max(gang.stop_at, report.stop_at);
  rank.seen = report;
  gang.was_complete = gang.was_complete || gang.ranks.size() >= report.ranks;
}

// The rest of a gang with an open row cannot make the steps that were agreed on.
void GangRows::forget(JobId job) {
  const auto found = gang_of_.find(job);
  if (found == gang_of_.end()) return;
  const auto gang = gangs_.find(found->second);
  gang->second.ranks.erase(job);
  if (gang->second.state == State::kOpen) gang->second.state = State::kClosing;
  if (gang->second.ranks.empty()) gangs_.erase(gang);
  gang_of_.erase(found);
}

void GangRows::note_singles(std::size_t device, const sched::Singles& singles) {
  singles_.at(device).seen = singles;
}

void GangRows::set_policy(const std::string& name) {
  contest_ = Contest(name, options_.class_floor);
}

RowOrders GangRows::settle(Nanos now) {
  RowOrders orders;
  pass_time(now);
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kWaiting || gang.state == State::kUnknown) adopt(gang, now, orders);
    if (gang.state == State::kOpen || gang.state == State::kClosing)
      settle_running(name, gang, now, orders);
  }
  settle_waiting(now, orders);
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kOpen) extend(gang, now, orders);
    tell(name, gang, orders);
    stand(gang, gang.party);
  }
  return orders;
}

// The row is over when no rank has a lease or is about to get one: all have reached its end, or are
// away at a boundary. Whoever is away may come to the next row.
void GangRows::settle_running(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  const bool is_running = gang.has([&](const Rank& rank) {
    const bool may_begin = gang.state == State::kOpen && rank.steps() < gang.stop_at;
    return rank.seen.has_lease || (rank.seen.wants && may_begin && !rank.seen.is_held_back);
  });
  if (!is_running) return close(name, gang, now, orders);
  settle_late(name, gang, now, orders);
  settle_stuck(name, gang, now, orders);
}

void GangRows::settle_waiting(Nanos now, RowOrders& orders) {
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
  const std::set<std::size_t>& devices = gang.party.devices;
  const auto busy = std::find_if(devices.begin(), devices.end(),
                                 [&](std::size_t each) { return taken.contains(each); });
  if (busy == devices.end() && let_singles_first(gang, now, orders))
    return "single jobs on its devices, which have their turns before its next row";
  std::string why;
  if (busy != devices.end())
    why = fmt::format("the row of gang {} on {}", taken.at(*busy)->second, options_.devices[*busy]);
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

void GangRows::open(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  for (const std::size_t device : gang.party.devices)
    singles_[device].have_turn = false;
  gang.state = State::kOpen;
  gang.stop_at = gang.most_steps() + steps_in_slice(gang);
  gang.since = gang.moved_at = now;
  gang.wanted_since.reset();
  gang.waits_for.clear();
  orders.said.push_back(fmt::format("gang {}: its row is open until step {} ({} steps, {})",
                                    name.second, gang.stop_at, steps_in_slice(gang),
                                    to_string(slice(gang))));
}

void GangRows::close(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  gang.state = State::kWaiting;
  gang.waits_since = now;
  orders.said.push_back(
      fmt::format("gang {}: its row is over at step {}", name.second, gang.stop_at));
}

// A larger stop_at may be told at any time: a rank that has stopped at the smaller one goes on.
void GangRows::extend(Gang& gang, Nanos now, RowOrders& orders) {
  const std::uint64_t more = steps_in_slice(gang);
  const std::uint64_t margin = std::max<std::uint64_t>(more / 2, 1);
  const std::uint64_t most = gang.most_steps();
  if (must_end(gang, now)) return;
  // A rank of which nothing is known cannot be told, and would be waited for inside a step.
  if (gang.has([](const Rank& rank) { return !rank.seen.is_known; })) return;
  if (most + margin >= gang.stop_at) gang.stop_at = most + std::max(more, margin + 1);
  orders.look_by(now + std::max(gang.time_of(gang.stop_at - most - margin), kLook));
}

void GangRows::tell(const GangName& name, Gang& gang, RowOrders& orders) const {
  if (gang.state == State::kUnknown) return;
  for (auto& [job, rank] : gang.ranks) {
    RankOrder order{.job = job, .is_free = is_free(gang)};
    if (!order.is_free) {
      const auto own = static_cast<std::int64_t>(gang.stop_at) - rank.shift;
      order.is_open = gang.state == State::kOpen;
      order.stop_at = static_cast<std::uint64_t>(std::max<std::int64_t>(own, 0));
      order.why = order.is_open ? fmt::format("the row of gang {} is open until step {}",
                                              name.second, order.stop_at)
                                : fmt::format("waits with its gang {} for {}", name.second,
                                              gang.waits_for.empty() ? "its row" : gang.waits_for);
    }
    if (rank.is_told && rank.told == order) continue;
    rank.told = order;
    rank.is_told = true;
    orders.ranks.push_back(std::move(order));
  }
}

// Whether one of its devices has another gang's row.
bool GangRows::is_beside_row(const Gang& gang) const {
  return std::any_of(gangs_.begin(), gangs_.end(), [&](const auto& each) {
    const Gang& other = each.second;
    const bool has_row = other.state == State::kOpen || other.state == State::kClosing;
    return &other != &gang && has_row && other.party.shares_device_with(gang.party);
  });
}

bool GangRows::wants_row(const Gang& gang) {
  if (gang.state != State::kWaiting || is_free(gang)) return false;
  return gang.has([](const Rank& r) { return r.seen.wants && !r.seen.is_held_back; });
}

bool GangRows::is_free(const Gang& gang) {
  return gang.was_complete && gang.state == State::kWaiting && devices_of(gang.ranks).size() < 2;
}

Nanos GangRows::slice(const Gang& gang) const {
  Nanos switching;
  for (const auto& [job, rank] : gang.ranks)
    switching = std::max(switching, rank.seen.switching);
  return std::clamp(sched::time_for_loss(switching, options_.switch_loss), options_.least_slice,
                    std::max(options_.least_slice, options_.most_slice));
}

std::uint64_t GangRows::steps_in_slice(const Gang& gang) const {
  const Nanos iteration = gang.iteration();
  if (iteration <= Nanos{0}) return kFirstSteps;
  const std::int64_t steps = (slice(gang).value() + iteration.value() - 1) / iteration.value();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(steps, 1));
}

Nanos GangRows::Gang::iteration() const {
  Nanos longest;
  for (const auto& [job, rank] : ranks)
    longest = std::max(longest, rank.seen.iteration);
  return longest;
}

Nanos GangRows::Gang::gap() const {
  Nanos longest;
  for (const auto& [job, rank] : ranks)
    longest = std::max(longest, rank.seen.gap);
  return longest;
}

// However many steps, it is no more than that of so many: the caller looks again.
Nanos GangRows::Gang::time_of(std::uint64_t steps) const {
  constexpr std::uint64_t kMost = 1000;
  return iteration() * static_cast<std::int64_t>(std::min(steps, kMost));
}

std::uint64_t GangRows::Gang::most_steps() const {
  std::uint64_t most = 0;
  for (const auto& [job, rank] : ranks)
    most = std::max(most, rank.steps());
  return most;
}

const GangName* GangRows::row_on(std::size_t device) const {
  for (const auto& [name, gang] : gangs_)
    if (gang.state != State::kWaiting && devices_of(gang.ranks).contains(device)) return &name;
  return nullptr;
}

void GangRows::check_invariants() const {
  std::set<std::size_t> taken;
  std::size_t num = 0;
  for (const auto& [name, gang] : gangs_) {
    num += gang.ranks.size();
    GS_CHECK(!gang.ranks.empty(), "gang {}", name.second);
    for (const auto& [job, rank] : gang.ranks)
      GS_CHECK(gang_of_.at(job) == name, "job {}", job.value);
    if (gang.state == State::kWaiting || gang.state == State::kUnknown) continue;
    for (const std::size_t device : devices_of(gang.ranks))
      GS_CHECK(taken.insert(device).second, "two rows on device {}", device);
  }
  GS_CHECK(num == gang_of_.size(), "{} ranks, {} known", num, gang_of_.size());
}

}  // namespace gpushare::host
