// The order of rows by service: the time that a gang has to run still, times the jobs that it keeps
// waiting for so long. These are the single jobs that are first on its devices, and other gangs.
//
// 1. Gangs are gone through in that order. A gang is first on its devices unless a gang before
//    it has one of them, or the single jobs there go first.
// 2. A gang that is first on all of them opens its row as soon as the rows there are over. Its own
// row goes on.
// 3. A gang that has not all of its devices keeps none of them from gangs after it. So devices are
//    idle only if no gang that waits fits in. What then runs on them makes way after a slice.
//
// Single jobs go first where that costs less. Of the first jobs on its devices let the j-th
// shortest have t(j) to run, and the gang r. If the j shortest run before the gang, it waits for
// t(j), and each of them waits r less. So none of them goes first if t(j) >= j r for each j.
//
// Limits on time and classes come before all of that, as under any policy (party.h). So does a
// party that has waited for too long and has its turn (gang_overdue.cpp).
//
// A gang that does not say how long it is counts with the time that it has had, as single jobs do.
// The same holds of one whose iterations were not seen yet: it has had nothing, so it is first for
// a row of a few steps, from which its length follows.
//
// source: shortest remaining service first, Gu et al., "Tiresias: A GPU Cluster Manager for
// Distributed Deep Learning" (NSDI 2019); rows: Ousterhout, "Scheduling Techniques for Concurrent
// Systems" (ICDCS 1982).
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/host/gang_rows.h"

namespace gpushare::host {
namespace {

// The gangs of each device, by their size.
class Crowd {
 public:
  explicit Crowd(std::size_t num_devices) : devices_(num_devices) {}

  // Gangs of 4 to 7 devices, say, are counted together: bit_width() is 3 for each of them.
  void add(std::size_t device, std::size_t size) { ++devices_[device].at(std::bit_width(size)); }
  // The part of each gang there that is on one device of `size`. Summed over these devices each
  // gang counts once, where of two gangs the devices of one are all devices of the other. Sizes are
  // rounded down to powers of two, so a gang of three counts one and a half times.
  [[nodiscard]] double gangs(std::size_t device, std::size_t size) const {
    double sum = 0;
    for (std::size_t width = 0; width < kSizes; ++width) {
      const std::size_t theirs = std::min(std::bit_floor(size), (std::size_t{1} << width) / 2);
      if (theirs > 0) sum += devices_[device][width] / static_cast<double>(theirs);
    }
    return sum;
  }

 private:
  static constexpr std::size_t kSizes = 24;  // powers of two
  std::vector<std::array<std::uint32_t, kSizes>> devices_;
};

}  // namespace

// A device of the gang for which somebody is there.
std::optional<std::size_t> GangRows::find_on(const Gang& gang, const ByDevice& of) {
  const std::vector<std::size_t>& devices = gang.party.devices;
  const auto found =
      std::ranges::find_if(devices, [&of](std::size_t device) { return of[device] != nullptr; });
  return found == devices.end() ? std::nullopt : std::optional(*found);
}

// The device of a single job that goes before the gang.
std::optional<std::size_t> GangRows::single_before(const Gang& gang) const {
  std::vector<std::pair<double, std::size_t>> singles;
  for (const std::size_t device : gang.party.devices) {
    const Party& party = singles_[device].party;
    if (!party.wants || gang.party.rank() < party.rank()) continue;
    if (party.rank() < gang.party.rank()) return device;
    singles.emplace_back(singles_[device].seen.seconds_to_run, device);
  }
  std::sort(singles.begin(), singles.end());
  double least = 0;
  for (const auto& [seconds, device] : singles) {
    least += gang.seconds_to_run();
    if (seconds < least) return singles.front().second;
  }
  return std::nullopt;
}

// The first in order that goes before the gang on one of its devices: a gang, or a single job.
std::optional<std::string> GangRows::first_before(const Gang& gang, const ByDevice& firsts) const {
  if (const auto device = find_on(gang, firsts)) return text_of_row(*firsts[*device], *device);
  if (const auto device = single_before(gang))
    return fmt::format("a single job on {}, which goes first", options_.devices[*device]);
  return std::nullopt;
}

// Gangs of the same rank and service are in the order in which they began to wait, and then of
// their names.
std::vector<GangRows::InLine> GangRows::in_order_of_service() {
  Crowd crowd(options_.devices.size());
  for (auto& [name, gang] : gangs_) {
    gang.is_first = false;
    if (gang.state == State::kWaiting && !wants_row(gang)) continue;
    for (const std::size_t device : gang.party.devices)
      crowd.add(device, gang.party.devices.size());
  }
  std::vector<InLine> line;
  for (auto& [name, gang] : gangs_) {
    if (is_free(gang)) continue;
    const bool is_counted = gang.state != State::kWaiting || wants_row(gang);
    double others = is_counted ? -1 : 0;  // itself
    for (const std::size_t device : gang.party.devices)
      others +=
          (singles_[device].party.wants ? 1 : 0) + crowd.gangs(device, gang.party.devices.size());
    const double service = gang.seconds_to_run() * std::max(others, 1.0);
    line.push_back({{gang.party.rank(), service, gang.waits_since}, name, gang});
  }
  std::ranges::stable_sort(line, {}, &InLine::place);
  return line;
}

// One step of going through the line. Opens its row if the gang is first and nobody has one there.
void GangRows::settle_in_line(const GangName& name, Gang& gang, ServiceStep& step) {
  const bool is_waiting = gang.state == State::kWaiting;
  if (is_waiting) {
    gang.waits_for = obstacle(gang, step.now, step.orders).value_or("");
    if (!gang.waits_for.empty()) return;
    if (wants_row(gang)) note_overdue(gang.party, overdue_at(gang), step.now);
  }
  if (auto before = first_before(gang, step.firsts)) {
    gang.waits_for = std::move(*before);
    return;
  }
  gang.is_first = true;
  for (const std::size_t device : gang.party.devices)
    step.firsts[device] = &name;
  if (!is_waiting) return;
  if (const auto device = find_on(gang, step.rows)) {
    gang.waits_for = text_of_row(*step.rows[*device], *device);
    return;
  }
  open(name, gang, step.now, step.orders);
  for (const std::size_t device : gang.party.devices)
    step.rows[device] = &name;
}

void GangRows::settle_by_service(Nanos now, RowOrders& orders) {
  const std::vector<InLine> line = in_order_of_service();
  overdue_.reset();
  for (Singles& singles : singles_)
    if (singles.party.wants && !singles.party.runs)
      note_overdue(singles.party, singles.seen.overdue_at, now);
  ServiceStep step{.rows = ByDevice(options_.devices.size()),
                   .firsts = ByDevice(options_.devices.size()),
                   .now = now,
                   .orders = orders};
  for (const auto& [name, gang] : gangs_) {
    if (gang.state == State::kWaiting) continue;
    for (const std::size_t device : gang.party.devices)
      step.rows[device] = &name;
  }
  for (const InLine& each : line)
    settle_in_line(each.name, each.gang, step);
  // Somebody of a lower class will be due.
  if (Contest::has_classes(parties_)) orders.look_by(now + options_.least_slice);
  look_for_overdue(now, orders);
}

// If one rank does not say how long it runs, the length of the gang is unknown: all ranks run as
// long as the longest.
bool GangRows::Gang::is_length_known() const {
  return !has([](const Rank& rank) { return !sched::is_length_known(rank.seen.standing); });
}

double GangRows::Gang::seconds_to_run() const {
  double longest = 0;
  for (const auto& [job, rank] : ranks)
    longest = std::max(longest, rank.seconds_to_run());
  return longest;
}

// A rank's length is told when it ends a lease. The steps that it has made since then are taken
// off.
double GangRows::Rank::seconds_to_run() const {
  const double seconds = sched::remaining_seconds(seen.standing);
  if (!sched::is_length_known(seen.standing)) return seconds;
  const std::uint64_t steps = std::max(seen.steps, steps_then) - steps_then;
  return seconds - to_seconds(seen.iteration) * static_cast<double>(steps);
}

}  // namespace gpushare::host
