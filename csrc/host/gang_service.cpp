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
#include <tuple>
#include <utility>

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

void GangRows::settle_by_service(Nanos now, RowOrders& orders) {
  std::vector<std::tuple<Party::Rank, double, Nanos, const GangName*, Gang*>> line;
  std::vector<const GangName*> rows(options_.devices.size());    // that are there now
  std::vector<const GangName*> firsts(options_.devices.size());  // whom the device is for
  Crowd crowd(options_.devices.size());
  for (auto& [name, gang] : gangs_) {
    gang.is_first = false;
    const bool has_row = gang.state != State::kWaiting;
    if (!has_row && !wants_row(gang)) continue;
    for (const std::size_t device : gang.party.devices) {
      crowd.add(device, gang.party.devices.size());
      if (has_row) rows[device] = &name;
    }
  }
  for (auto& [name, gang] : gangs_) {
    if (is_free(gang)) continue;
    const bool is_counted = gang.state != State::kWaiting || wants_row(gang);
    double others = is_counted ? -1 : 0;  // itself
    for (const std::size_t device : gang.party.devices)
      others +=
          (singles_[device].party.wants ? 1 : 0) + crowd.gangs(device, gang.party.devices.size());
    line.emplace_back(gang.party.rank(), gang.seconds_to_run() * std::max(others, 1.0),
                      gang.waits_since, &name, &gang);
  }
  std::sort(line.begin(), line.end());
  overdue_.reset();
  for (Singles& singles : singles_)
    if (singles.party.wants && !singles.party.runs)
      note_overdue(singles.party, singles.seen.overdue_at, now);
  for (const auto& [rank, service, since, name, gang] : line) {
    const bool is_waiting = gang->state == State::kWaiting;
    if (is_waiting) {
      gang->waits_for = obstacle(*gang, now, orders).value_or("");
      if (!gang->waits_for.empty()) continue;
      if (wants_row(*gang)) note_overdue(gang->party, overdue_at(*gang), now);
    }
    const std::vector<std::size_t>& devices = gang->party.devices;
    const auto find = [&devices](const std::vector<const GangName*>& of) {
      return std::find_if(devices.begin(), devices.end(),
                          [&of](std::size_t device) { return of[device] != nullptr; });
    };
    if (const auto before = find(firsts); before != devices.end()) {
      gang->waits_for = text_of_row(*firsts[*before], *before);
      continue;
    }
    if (const auto single = single_before(*gang)) {
      gang->waits_for =
          fmt::format("a single job on {}, which goes first", options_.devices[*single]);
      continue;
    }
    gang->is_first = true;
    for (const std::size_t device : devices)
      firsts[device] = name;
    if (!is_waiting) continue;
    if (const auto row = find(rows); row != devices.end()) {
      gang->waits_for = text_of_row(*rows[*row], *row);
      continue;
    }
    open(*name, *gang, now, orders);
    for (const std::size_t device : devices)
      rows[device] = name;
  }
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
