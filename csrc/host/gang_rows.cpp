// Decides which gang's row is open on which devices, and until which step.
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
// How long the first ranks of a program wait for those that were never here.
constexpr Nanos kMissing = seconds(10);
// A row is looked at after so many steps at the latest, however many it has: their times are
// summed.
constexpr std::uint64_t kMostAhead = 100'000;
// How often an open row is looked at, at most.
constexpr Nanos kLook = millis(10);

template <typename Ranks>
std::vector<std::size_t> devices_of(const Ranks& ranks) {
  std::set<std::size_t> devices;
  for (const auto& [job, rank] : ranks)
    devices.insert(rank.seen.device);
  return {devices.begin(), devices.end()};
}

// What of a rank decides whether its gang may have a row.
auto placing(const RankReport& of) {
  return std::tuple(of.device, of.ranks, of.wants, of.has_lease, of.is_known, of.is_held_back,
                    of.remaining);
}

}  // namespace

std::uint64_t GangRows::Rank::steps() const {
  const auto count = static_cast<std::int64_t>(seen.steps) + shift;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
}

GangRows::GangRows(RowOptions options)
    : options_(std::move(options)),
      singles_(options_.devices.size()),
      singles_until_(options_.devices.size()),
      first_single_(options_.devices.size()),
      wanting_(options_.devices.size()) {}

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
  const auto [place, is_new_rank] = gang.ranks.try_emplace(report.job);
  Rank& rank = place->second;
  if (report.wants && !rank.seen.wants) rank.wants_since = now;
  const auto standing = [](const RankReport& of) {
    return std::tuple(of.steps, of.wants, of.has_lease, of.is_known);
  };
  if (standing(rank.seen) != standing(report)) gang.moved_at = now;
  // It comes to a row that was agreed on with a coordinator before, and may know a later end.
  const bool is_first = report.is_known && !rank.is_told;
  if (is_first && gang.state == State::kOpen) gang.stop_at = std::max(gang.stop_at, report.stop_at);
  if (rank.seen.remaining != report.remaining) rank.steps_then = report.steps;
  const bool is_news = is_new_rank || placing(rank.seen) != placing(report);
  rank.seen = report;
  if (is_news) note_news(gang);
  gang.was_complete = gang.was_complete || gang.ranks.size() >= report.ranks;
}

void GangRows::note_news(Gang& gang) {
  gang.devices = devices_of(gang.ranks);
  gang.has_news = is_line_new_ = true;
}

// The rest of a gang with an open row cannot make the steps that were agreed on.
void GangRows::forget(JobId job) {
  const auto found = gang_of_.find(job);
  if (found == gang_of_.end()) return;
  const auto gang = gangs_.find(found->second);
  gang->second.ranks.erase(job);
  if (gang->second.state == State::kOpen) gang->second.state = State::kClosing;
  note_news(gang->second);
  if (gang->second.ranks.empty()) gangs_.erase(gang);
  gang_of_.erase(found);
}

void GangRows::set_by_service(bool is_by_service) {
  if (std::exchange(options_.is_by_service, is_by_service) == is_by_service) return;
  is_line_new_ = true;
  for (auto& [name, gang] : gangs_)
    gang.is_first = false;
}

// While the first single job runs it has less and less to go, which lets no gang open a row.
void GangRows::note_singles(std::size_t device, std::size_t num, std::optional<double> first) {
  const std::optional<double> before = std::exchange(first_single_.at(device), first);
  const bool is_other =
      before.has_value() != first.has_value() || (first.has_value() && *first > *before);
  const bool is_new = std::exchange(singles_.at(device), num) != num;
  is_line_new_ = is_line_new_ || is_new || (options_.is_by_service && is_other);
}

// What is skipped would come out as it did the last time.
RowOrders GangRows::settle(Nanos now) {
  RowOrders orders;
  for (auto& [name, gang] : gangs_) {
    const bool is_running = gang.state == State::kOpen || gang.state == State::kClosing;
    if (gang.has_news && !is_running) adopt(gang, now);
  }
  if (is_line_new_) count_wanting();
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kOpen || gang.state == State::kClosing)
      settle_running(name, gang, now, orders);
  }
  settle_waiting(now, orders);
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kOpen) extend_if_alone(gang, now, orders);
    tell(name, gang, orders);
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
  if (is_line_new_ || (line_due_.has_value() && now >= *line_due_)) {
    is_line_new_ = false;
    RowOrders found;
    options_.is_by_service ? settle_by_service(now, found) : settle_in_turn(now, found);
    line_due_ = found.look_at;
    orders.said.insert(orders.said.end(), found.said.begin(), found.said.end());
  }
  if (line_due_.has_value()) orders.look_by(*line_due_);
}

void GangRows::settle_in_turn(Nanos now, RowOrders& orders) {
  std::vector<std::pair<std::uint64_t, const GangName*>> line;
  std::map<std::size_t, const GangName*> taken;
  for (const auto& [name, gang] : gangs_) {
    if (gang.state == State::kWaiting) line.emplace_back(gang.place, &name);
    if (gang.state == State::kWaiting) continue;
    for (const std::size_t device : gang.devices)
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
    const std::vector<std::size_t>& devices = gang.devices;
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
      orders.look_by(rest);
    } else {
      open(*name, gang, now, orders);
    }
    for (const std::size_t device : devices)
      taken.emplace(device, name);
  }
}

// Why no row may be opened for the gang whatever others do.
std::optional<std::string> GangRows::obstacle(const Gang& gang, Nanos now, RowOrders& orders) {
  if (gang.has([](const Rank& rank) { return !rank.seen.is_known; })) return "a rank to come back";
  if (gang.has([](const Rank& rank) { return rank.seen.is_held_back; }))
    return "a rank that is paused or suspended";
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
  if (wants_row(gang)) add_to_wanting(gang, -1);
  gang.state = State::kOpen;
  gang.stop_at = gang.most_steps() + steps_in_slice(gang);
  gang.since = gang.moved_at = now;
  gang.wanted_since.reset();
  gang.waits_for.clear();
  orders.said.push_back(fmt::format("gang {}: its row is open until step {} ({} steps, {})",
                                    name.second, gang.stop_at, steps_in_slice(gang),
                                    to_string(slice(gang))));
}

// Single jobs that wait now have their turns before the next row on their device.
void GangRows::close(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  gang.state = State::kWaiting;
  gang.place = ++places_;
  is_line_new_ = true;
  if (wants_row(gang)) add_to_wanting(gang, 1);
  for (const std::size_t device : gang.devices) {
    const auto turns = static_cast<std::int64_t>(singles_[device]);
    singles_until_[device] = now + turn_after_row(gang, now) * turns;
  }
  orders.said.push_back(
      fmt::format("gang {}: its row is over at step {}", name.second, gang.stop_at));
}

// A larger stop_at may be told at any time: a rank that has stopped at the smaller one goes on.
void GangRows::extend_if_alone(Gang& gang, Nanos now, RowOrders& orders) {
  const std::uint64_t more = steps_in_slice(gang);
  const std::uint64_t margin = std::max<std::uint64_t>(more / 2, 1);
  const std::uint64_t most = gang.most_steps();
  if (makes_way(gang)) return;
  if (most + margin >= gang.stop_at) gang.stop_at = most + std::max(more, margin + 1);
  const auto left = static_cast<std::int64_t>(std::min(gang.stop_at - most - margin, kMostAhead));
  const Nanos iteration = gang.iteration();
  orders.look_by(now + std::max(iteration * left, kLook));
}

void GangRows::tell(const GangName& name, Gang& gang, RowOrders& orders) const {
  if (gang.state == State::kUnknown) return;
  auto now_told = std::tie(gang.state, gang.stop_at, gang.waits_for);
  if (!std::exchange(gang.has_news, false) && now_told == gang.told) return;
  gang.told = now_told;
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

void GangRows::count_wanting() {
  std::fill(wanting_.begin(), wanting_.end(), 0);
  for (const auto& [name, gang] : gangs_)
    if (wants_row(gang)) add_to_wanting(gang, 1);
}

void GangRows::add_to_wanting(const Gang& gang, int num) {
  for (const std::size_t device : gang.devices)
    wanting_[device] += num;
}

// Another gang that wants one of its devices, or a single job in line there.
bool GangRows::is_wanted_by_others(const Gang& gang) const {
  const int own = wants_row(gang) ? 1 : 0;
  return std::any_of(gang.devices.begin(), gang.devices.end(), [&](std::size_t device) {
    return singles_[device] > 0 || wanting_[device] > own;
  });
}

// By service, whoever has more to run waits until the first has ended. If it is not known how long
// that takes, the first makes way after a slice, and is compared with the others anew.
bool GangRows::makes_way(const Gang& gang) const {
  return is_wanted_by_others(gang) && !(gang.is_first && gang.is_length_known());
}

bool GangRows::wants_row(const Gang& gang) {
  if (gang.state != State::kWaiting || is_free(gang)) return false;
  return gang.has([](const Rank& r) { return r.seen.wants && !r.seen.is_held_back; });
}

bool GangRows::is_free(const Gang& gang) {
  return gang.was_complete && gang.state == State::kWaiting && gang.devices.size() < 2;
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

std::uint64_t GangRows::Gang::most_steps() const {
  std::uint64_t most = 0;
  for (const auto& [job, rank] : ranks)
    most = std::max(most, rank.steps());
  return most;
}

const GangName* GangRows::row_on(std::size_t device) const {
  for (const auto& [name, gang] : gangs_)
    if (gang.state != State::kWaiting &&
        std::binary_search(gang.devices.begin(), gang.devices.end(), device)) {
      return &name;
    }
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
    GS_CHECK(gang.devices == devices_of(gang.ranks), "gang {}", name.second);
    if (gang.state == State::kWaiting) continue;
    for (const std::size_t device : gang.devices)
      GS_CHECK(taken.insert(device).second, "two rows on device {}", device);
  }
  GS_CHECK(num == gang_of_.size(), "{} ranks, {} known", num, gang_of_.size());
}

}  // namespace gpushare::host
