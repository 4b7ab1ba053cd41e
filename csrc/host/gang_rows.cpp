// Decides which gang's row is open on which devices, and until which step.
//
// The files gang_waiting.cpp and gang_service.cpp decide whose row is opened next. Two open rows
// never share a device.
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
                    of.setback, of.standing.priority, of.standing.weight,
                    of.standing.iterations_to_go, of.standing.iteration);
}

}  // namespace

// Ranks may have begun to count at different steps. `shift` brings a rank's own count to the
// gang's, so that one stop_at is the same step for all.
std::uint64_t GangRows::Rank::steps() const {
  const auto count = static_cast<std::int64_t>(seen.steps) + shift;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
}

GangRows::GangRows(RowOptions options)
    : options_(std::move(options)),
      singles_(options_.devices.size()),
      contest_(options_.policy, options_.class_floor, options_.users),
      wanting_(options_.devices.size()) {}

// A device that is named anew may be another one under the same number, so nothing that was known
// of its single jobs holds.
void GangRows::name_device(std::size_t device, std::string name) {
  GS_CHECK(device <= options_.devices.size());
  forget_overdue();
  options_.devices.resize(std::max(options_.devices.size(), device + 1));
  options_.devices[device] = std::move(name);
  singles_.resize(options_.devices.size());
  singles_[device] = {};
  wanting_.resize(options_.devices.size());
  is_line_new_ = true;
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
  // Steps from here on are taken off what it has to run (Rank::seconds_to_run()).
  if (rank.seen.standing.iterations_to_go != report.standing.iterations_to_go)
    rank.steps_then = report.steps;
  const bool is_news = is_new_rank || placing(rank.seen) != placing(report);
  rank.seen = report;
  if (is_news) note_news(gang);
  gang.was_complete = gang.was_complete || gang.ranks.size() >= report.ranks;
}

void GangRows::note_news(Gang& gang) {
  gang.party.devices = devices_of(gang.ranks);
  gang.has_news = is_line_new_ = true;
}

// The rest of a gang with an open row cannot make the steps that were agreed on.
void GangRows::forget(JobId job) {
  const auto found = gang_of_.find(job);
  if (found == gang_of_.end()) return;
  const auto gang = gangs_.find(found->second);
  gang->second.ranks.erase(job);
  forget_overdue();
  if (gang->second.state == State::kOpen) gang->second.state = State::kClosing;
  note_news(gang->second);
  if (gang->second.ranks.empty()) gangs_.erase(gang);
  gang_of_.erase(found);
}

// While the first single job runs it has less and less to go, which lets no gang open a row.
bool GangRows::note_singles(std::size_t device, const sched::Singles& singles) {
  Singles& known = singles_.at(device);
  const sched::Singles before = std::exchange(known.seen, singles);
  const auto standing = [](const sched::Singles& of) {
    const sched::Standing first = of.first.value_or(sched::Standing{});
    return std::tuple(of.weights, of.setback, of.has_lease, of.is_in_line, first.id,
                      first.priority);
  };
  const bool is_news =
      standing(before) != standing(singles) || before.seconds_to_run < singles.seconds_to_run;
  known.has_news = true;
  is_line_new_ = is_line_new_ || is_news;
  return is_news;
}

// What was found by the other policy does not hold under this one. Open rows go on until settle()
// looks at them.
void GangRows::set_policy(const std::string& name) {
  contest_ = Contest(name, options_.class_floor, options_.users);
  is_line_new_ = true;
  forget_overdue();
  for (auto& [of, gang] : gangs_)
    gang.is_first = false;
}

// A part is skipped where it would come out as it did the last time.
RowOrders GangRows::settle(Nanos now) {
  RowOrders orders;
  pass_time(now);
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kUnknown || (gang.state == State::kWaiting && gang.has_news))
      adopt(gang, now, orders);
  }
  if (is_line_new_) count_wanting();
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kOpen || gang.state == State::kClosing)
      settle_running(name, gang, now, orders);
  }
  // A row that has ended now may have been in the way.
  for (auto& [name, gang] : gangs_) {
    if (gang.state != State::kUnknown) continue;
    adopt(gang, now, orders);
    if (gang.state == State::kOpen) settle_running(name, gang, now, orders);
  }
  settle_waiting(now, orders);
  for (auto& [name, gang] : gangs_) {
    if (gang.state == State::kOpen) extend(gang, now, orders);
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

void GangRows::open(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  if (wants_row(gang)) add_to_wanting(gang, -1);
  for (const std::size_t device : gang.party.devices)
    singles_[device].have_turn = false;
  gang.state = State::kOpen;
  gang.waited += now - gang.stands_since();
  begin_overdue_turn(gang.party, now);
  gang.stop_at = gang.most_steps() + steps_in_slice(gang);
  gang.since = gang.moved_at = now;
  gang.wanted_since.reset();
  gang.waits_for.clear();
  stand(gang, gang.party);
  orders.said.push_back(fmt::format("gang {}: its row is open until step {} ({} steps, {})",
                                    name.second, gang.stop_at, steps_in_slice(gang),
                                    to_string(slice(gang))));
}

// The time that it waits from now on counts towards its next row.
void GangRows::close(const GangName& name, Gang& gang, Nanos now, RowOrders& orders) {
  gang.state = State::kWaiting;
  gang.waits_since = now;
  is_line_new_ = true;
  if (wants_row(gang)) add_to_wanting(gang, 1);
  stand(gang, gang.party);
  orders.said.push_back(
      fmt::format("gang {}: its row is over at step {}", name.second, gang.stop_at));
}

// A larger stop_at may be told at any time: a rank that has stopped at the smaller one goes on.
void GangRows::extend(Gang& gang, Nanos now, RowOrders& orders) {
  const std::uint64_t more = steps_in_slice(gang);
  const std::uint64_t margin = std::max<std::uint64_t>(more / 2, 1);
  const std::uint64_t most = gang.most_steps();
  if (most + margin >= gang.stop_at) {
    if (must_end(gang, now)) return;
    // A rank of which nothing is known cannot be told, and would be waited for inside a step.
    if (gang.has([](const Rank& rank) { return !rank.seen.is_known; })) return;
    gang.stop_at = most + std::max(more, margin + 1);
  }
  orders.look_by(now + std::max(gang.time_of(gang.stop_at - most - margin), kLook));
}

// Each rank is told in its own count. An order that a rank has already is not sent again, so a
// settled gang costs no messages.
void GangRows::tell(const GangName& name, Gang& gang, RowOrders& orders) const {
  // Nothing is told before all ranks have said what they were told (adopt()).
  if (gang.state == State::kUnknown) return;
  const auto now_told = std::tie(gang.state, gang.stop_at, gang.waits_for);
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

// A gang whose ranks are all on one device needs no row: the device's own machine gives them one
// lease together. That is known only once all its ranks have come.
bool GangRows::is_free(const Gang& gang) {
  return gang.was_complete && gang.state == State::kWaiting && gang.party.devices.size() < 2;
}

// The rank that takes longest to get its memory back decides, since the others wait for it.
Nanos GangRows::slice(const Gang& gang) const {
  Nanos switching;
  for (const auto& [job, rank] : gang.ranks)
    switching = std::max(switching, rank.seen.switching);
  return std::clamp(sched::time_for_loss(switching, options_.switch_loss), options_.least_slice,
                    std::max(options_.least_slice, options_.most_slice));
}

// Rounded up, and at least one: a row without a step would be over before it began.
std::uint64_t GangRows::steps_in_slice(const Gang& gang) const {
  const Nanos iteration = gang.iteration();
  if (iteration <= Nanos{0}) return kFirstSteps;
  const std::int64_t steps = (slice(gang).value() + iteration.value() - 1) / iteration.value();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(steps, 1));
}

const GangName* GangRows::row_on(std::size_t device) const {
  for (const auto& [name, gang] : gangs_)
    if (gang.state != State::kWaiting && gang.party.is_on(device)) return &name;
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
    GS_CHECK(gang.party.devices == devices_of(gang.ranks), "gang {}", name.second);
    if (gang.state == State::kWaiting || gang.state == State::kUnknown) continue;
    for (const std::size_t device : gang.party.devices)
      GS_CHECK(taken.insert(device).second, "two rows on device {}", device);
  }
  GS_CHECK(num == gang_of_.size(), "{} ranks, {} known", num, gang_of_.size());
}

}  // namespace gpushare::host
