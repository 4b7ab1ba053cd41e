// Whose row is open on which devices, and until which step.
//
// Gangs have rows in turn: the one whose last row is longest ago is first. A gang that has to wait
// for one of its devices keeps its other devices from gangs after it, so a large gang is not passed
// over for ever. Two open rows never share a device. Between two rows on a device, each single job
// that waits there gets a slice.
//
// A row's number of steps is what the slowest rank makes in a slice. The slice is long enough that
// switching costs no more than switch_loss, as for single jobs. While nobody else waits for the
// devices the row is extended before its end, so a gang alone never stops.
//
// A rank that has reached stop_at has ended its lease by itself. In programs whose ranks step
// together no rank can then be inside a step that needs it. If ranks count differently after all
// (one evaluates in blocks of its own), one of them waits inside an iteration for a rank that has
// stopped. Nothing moves then. After a while that count is taken to be equal to stop_at (learn()),
// and the row goes on for one step. A rank that is away (it has no more input, or saves a file) is
// not waited for: the row closes.
//
// What may go wrong: a rank ends inside its row. The row begins no iteration any more, and its
// devices are free when the other ranks have no lease. They fail, or wait until their engine ends
// them, as without gpushare.
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
// How long the first ranks of a program wait for those that were never here.
constexpr Nanos kMissing = seconds(10);
// So long nothing moves in a row before its ranks are taken to count differently: so many
// iterations, and no less than the time.
constexpr std::int64_t kStuckIterations = 10;
constexpr Nanos kStuck = seconds(2);
// How often an open row is looked at, at most.
constexpr Nanos kLook = millis(10);

template <typename Ranks, typename Is>
bool is_any(const Ranks& ranks, const Is& is) {
  return std::any_of(ranks.begin(), ranks.end(), [&](const auto& each) { return is(each.second); });
}

template <typename Ranks>
std::set<std::size_t> devices_of(const Ranks& ranks) {
  std::set<std::size_t> devices;
  for (const auto& [job, rank] : ranks)
    devices.insert(rank.seen.device);
  return devices;
}

void look_by(RowOrders& orders, Nanos at) {
  orders.look_at = std::min(orders.look_at.value_or(at), at);
}

}  // namespace

std::uint64_t GangRows::Rank::steps() const {
  const auto count = static_cast<std::int64_t>(seen.steps) + shift;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
}

GangRows::GangRows(RowOptions options)
    : options_(std::move(options)),
      singles_(options_.devices.size()),
      singles_until_(options_.devices.size()) {}

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
    gang.place = ++places_;
    gang.since = gang.moved_at = now;
  }
  Rank& rank = gang.ranks[report.job];
  if (report.wants && !rank.seen.wants) rank.wants_since = now;
  const auto standing = [](const RankReport& of) {
    return std::tuple(of.steps, of.wants, of.has_lease, of.is_known);
  };
  if (standing(rank.seen) != standing(report)) gang.moved_at = now;
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

void GangRows::note_singles(std::size_t device, std::size_t num_waiting) {
  singles_.at(device) = num_waiting;
}

RowOrders GangRows::settle(Nanos now) {
  RowOrders orders;
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kWaiting) adopt(gang, now);
    if (gang.state != State::kWaiting) settle_running(name, gang, now, orders);
  }
  settle_waiting(now, orders);
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kOpen) extend_if_alone(gang, now, orders);
    tell(name, gang, orders);
  }
  return orders;
}

// Ranks that have leases without a row got them from the coordinator before this one, or while all
// of the gang were on one device. What the ranks were told last was agreed on, or was about to be
// told to all, so all are told the largest of it.
void GangRows::adopt(Gang& gang, Nanos now) {
  if (is_free(gang) || !is_any(gang.ranks, [](const Rank& r) { return r.seen.has_lease; })) return;
  if (is_any(gang.ranks, [](const Rank& r) { return !r.seen.is_known; })) {
    gang.state = State::kClosing;  // begins nothing, until all counts are known
    return;
  }
  std::uint64_t told = 0;
  for (const auto& [job, rank] : gang.ranks)
    told = std::max(told, rank.seen.stop_at);
  gang.stop_at = std::max(told, most_steps(gang) + (told == 0 ? 1 : 0));
  gang.state = State::kOpen;
  gang.since = gang.moved_at = now;
}

void GangRows::settle_running(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  const bool is_running = is_any(gang.ranks, [](const Rank& rank) { return rank.seen.has_lease; });
  const bool is_behind =
      is_any(gang.ranks, [&](const Rank& rank) { return rank.steps() < gang.stop_at; });
  if (!is_running && (gang.state == State::kClosing || !is_behind)) {
    return close(name, gang, now, orders);
  }
  settle_stuck(name, gang, now, orders);
}

// Nothing has moved for long, and a rank is waited for that may not go on.
void GangRows::settle_stuck(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  const bool is_closing = gang.state == State::kClosing;
  const bool is_one_stopped = is_any(gang.ranks, [&](const Rank& rank) {
    return rank.seen.wants && (is_closing || rank.steps() >= gang.stop_at);
  });
  const bool is_one_inside = is_any(gang.ranks, [&](const Rank& rank) {
    return rank.seen.has_lease && !rank.seen.is_in_gap && rank.seen.is_known;
  });
  const bool may_come = is_any(gang.ranks, [&](const Rank& rank) {
    return rank.seen.wants && !is_closing && rank.steps() < gang.stop_at;
  });
  if (!is_one_stopped || may_come) return;
  const Nanos due = gang.moved_at + patience_inside(gang);
  if (now < due) return look_by(orders, due);
  gang.moved_at = now;
  if (!is_one_inside) {
    gang.state = State::kClosing;
    orders.said.push_back(fmt::format("gang {}: a rank is away, its row closes", name.second));
    if (!is_any(gang.ranks, [](const Rank& rank) { return rank.seen.has_lease; }))
      close(name, gang, now, orders);
    return;
  }
  learn(gang);
  gang.state = State::kOpen;
  gang.stop_at = most_steps(gang) + 1;
  orders.said.push_back(fmt::format(
      "gang {}: a rank inside an iteration waits for one that has stopped; all go on to step {}",
      name.second, gang.stop_at));
}

// A rank that waits inside an iteration for one that has stopped has ended as many steps as that.
void GangRows::learn(Gang& gang) {
  std::uint64_t stopped = 0;
  for (const auto& [job, rank] : gang.ranks)
    if (rank.seen.wants) stopped = std::max(stopped, rank.steps());
  for (auto& [job, rank] : gang.ranks) {
    if (rank.seen.wants || !rank.seen.has_lease || !rank.seen.is_known) continue;
    rank.shift = static_cast<std::int64_t>(stopped) - static_cast<std::int64_t>(rank.seen.steps);
  }
}

void GangRows::settle_waiting(Nanos now, RowOrders& orders) {
  std::vector<std::pair<std::uint64_t, const GangName*>> line;
  std::map<std::size_t, const GangName*> taken;
  for (const auto& [name, gang] : gangs_) {
    if (gang.state == State::kWaiting) line.emplace_back(gang.place, &name);
    if (gang.state == State::kWaiting) continue;
    for (const std::size_t device : devices_of(gang.ranks))
      taken.emplace(device, &name);
  }
  std::sort(line.begin(), line.end());
  for (const auto& [place, name] : line) {
    Gang& gang = gangs_.at(*name);
    if (is_free(gang)) continue;
    if (auto why = obstacle(gang, now, orders)) {
      gang.waits_for = std::move(*why);
      continue;
    }
    const std::set<std::size_t> devices = devices_of(gang.ranks);
    const auto busy = std::find_if(devices.begin(), devices.end(),
                                   [&](std::size_t each) { return taken.contains(each); });
    Nanos rest;
    for (const std::size_t device : devices)
      if (singles_[device] > 0) rest = std::max(rest, singles_until_[device]);
    if (busy != devices.end()) {
      gang.waits_for =
          fmt::format("the row of gang {} on {}", taken.at(*busy)->second, options_.devices[*busy]);
    } else if (now < rest) {
      gang.waits_for = "single jobs on its devices, which have their turns before its next row";
      look_by(orders, rest);
    } else {
      open(*name, gang, now, orders);
    }
    for (const std::size_t device : devices)
      taken.emplace(device, name);
  }
}

// Why no row may be opened for the gang whatever others do.
std::optional<std::string> GangRows::obstacle(const Gang& gang, Nanos now, RowOrders& orders) {
  if (is_any(gang.ranks, [](const Rank& rank) { return !rank.seen.is_known; }))
    return "a rank to come back";
  if (is_any(gang.ranks, [](const Rank& rank) { return rank.seen.is_held_back; }))
    return "a rank that is paused or suspended";
  const std::uint32_t ranks = gang.ranks.begin()->second.seen.ranks;
  if (!gang.was_complete && now < gang.since + kMissing) {
    look_by(orders, gang.since + kMissing);
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
  if (num > 0) look_by(orders, due);
  return fmt::format("its other ranks: {} of {} want a lease", num, gang.ranks.size());
}

void GangRows::open(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  gang.state = State::kOpen;
  gang.stop_at = most_steps(gang) + steps_in_slice(gang);
  gang.since = gang.moved_at = now;
  gang.waits_for.clear();
  orders.said.push_back(fmt::format("gang {}: its row is open until step {} ({} steps, {})",
                                    name.second, gang.stop_at, steps_in_slice(gang),
                                    to_string(slice(gang))));
}

// Single jobs that wait now have their turns before the next row on their device.
void GangRows::close(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  gang.state = State::kWaiting;
  gang.place = ++places_;
  for (const std::size_t device : devices_of(gang.ranks)) {
    const auto turns = static_cast<std::int64_t>(singles_[device]);
    singles_until_[device] = now + slice(gang) * turns;
  }
  orders.said.push_back(
      fmt::format("gang {}: its row is over at step {}", name.second, gang.stop_at));
}

// A larger stop_at may be told at any time: a rank that has stopped at the smaller one goes on.
void GangRows::extend_if_alone(Gang& gang, Nanos now, RowOrders& orders) {
  const std::uint64_t more = steps_in_slice(gang);
  const std::uint64_t most = most_steps(gang);
  if (is_wanted_by_others(gang)) return;
  if (most + more / 2 >= gang.stop_at) gang.stop_at = most + more;
  const auto left = static_cast<std::int64_t>(gang.stop_at - most - more / 2);
  Nanos iteration;
  for (const auto& [job, rank] : gang.ranks)
    iteration = std::max(iteration, rank.seen.iteration);
  look_by(orders, now + std::max(iteration * left, kLook));
}

void GangRows::tell(const GangName& name, Gang& gang, RowOrders& orders) const {
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

// Another gang that wants one of its devices, or a single job in line there.
bool GangRows::is_wanted_by_others(const Gang& gang) const {
  const std::set<std::size_t> devices = devices_of(gang.ranks);
  const auto has_singles = [&](std::size_t device) { return singles_[device] > 0; };
  if (std::any_of(devices.begin(), devices.end(), has_singles)) return true;
  return is_any(gangs_, [&](const Gang& other) {
    if (&other == &gang || !wants_row(other)) return false;
    return is_any(other.ranks, [&](const Rank& r) { return devices.contains(r.seen.device); });
  });
}

bool GangRows::wants_row(const Gang& gang) {
  if (gang.state != State::kWaiting || is_free(gang)) return false;
  return is_any(gang.ranks, [](const Rank& r) { return r.seen.wants && !r.seen.is_held_back; });
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
  Nanos iteration;
  for (const auto& [job, rank] : gang.ranks)
    iteration = std::max(iteration, rank.seen.iteration);
  if (iteration <= Nanos{0}) return kFirstSteps;
  const std::int64_t steps = (slice(gang).value() + iteration.value() - 1) / iteration.value();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(steps, 1));
}

Nanos GangRows::patience_inside(const Gang& gang) {
  Nanos iteration;
  for (const auto& [job, rank] : gang.ranks)
    iteration = std::max(iteration, rank.seen.iteration);
  return std::max(iteration * kStuckIterations, kStuck);
}

std::uint64_t GangRows::most_steps(const Gang& gang) {
  std::uint64_t most = 0;
  for (const auto& [job, rank] : gang.ranks)
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
    if (gang.state == State::kWaiting) continue;
    for (const std::size_t device : devices_of(gang.ranks))
      GS_CHECK(taken.insert(device).second, "two rows on device {}", device);
  }
  GS_CHECK(num == gang_of_.size(), "{} ranks, {} known", num, gang_of_.size());
}

}  // namespace gpushare::host
