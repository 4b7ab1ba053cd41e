#include "csrc/sched/share_limit.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace gpushare::sched {
namespace {

constexpr double kBurst = 1;  // seconds

double most_saved(double share_limit) { return share_limit * kBurst; }

Nanos from_seconds(double time) { return Nanos{static_cast<std::int64_t>(time * 1e9)}; }

// A new one is full since `since`.
Allowance& allowance_of(Device& device, std::uint32_t uid, double share_limit, Nanos since) {
  const auto [found, is_new] = device.allowances.try_emplace(uid);
  Allowance& allowance = found->second;
  if (is_new) {
    allowance.seconds = most_saved(share_limit);
    allowance.as_of = since;
  }
  return allowance;
}

// Leases that his jobs have open.
std::size_t num_leases(const Table& table, const Device& device, std::uint32_t uid) {
  return static_cast<std::size_t>(
      std::count_if(device.lanes.begin(), device.lanes.end(), [&](const Lane& lane) {
        return lane.lease.has_value() && table.at(lane.lease->job).uid == uid;
      }));
}

// At his limit an elastic user goes on while nobody else in the lane wants the time: that neither
// spends nor earns.
void spend(const Table& table, const Device& device, const Lane& lane, Nanos now, Allowance& own) {
  const UserOptions& user = table.options.users.of(table.at(lane.lease->job).uid);
  const double left = own.seconds - to_seconds(std::max(now - lane.lease->charged_until, Nanos{}));
  if (user.is_elastic && left < 0 && !first_with_time(table, device, lane).has_value()) {
    own.seconds = std::min(own.seconds, 0.0);
    own.as_of = now;
  } else {
    own.seconds = left;
  }
}

}  // namespace

void settle_allowances(Table& table, Nanos now) {
  const Table& known = table;
  for (Device& device : table.devices) {
    for (const Lane& lane : device.lanes) {
      if (!lane.lease.has_value()) continue;
      const std::uint32_t uid = known.at(lane.lease->job).uid;
      const double share_limit = table.options.users.of(uid).share_limit;
      if (share_limit <= 0) continue;
      const Nanos since = std::min(lane.lease->charged_until, now);
      spend(known, device, lane, now, allowance_of(device, uid, share_limit, since));
    }
    for (auto& [uid, allowance] : device.allowances) {
      const double share_limit = table.options.users.of(uid).share_limit;
      const double most = most_saved(share_limit);
      allowance.seconds += share_limit * to_seconds(now - allowance.as_of);
      allowance.seconds = std::min(allowance.seconds, most);
      allowance.as_of = now;
      if (allowance.seconds <= 0) allowance.is_used_up = true;
      if (allowance.seconds >= most / 2) allowance.is_used_up = false;
    }
    // A new one is full too.
    std::erase_if(device.allowances, [&](const auto& entry) {
      const auto& [uid, allowance] = entry;
      return allowance.seconds >= most_saved(table.options.users.of(uid).share_limit);
    });
  }
}

bool is_used_up(const Device& device, std::uint32_t uid) {
  const auto found = device.allowances.find(uid);
  return found != device.allowances.end() && found->second.is_used_up;
}

bool is_barred(const Table& table, const Device& device, std::uint32_t uid) {
  return is_used_up(device, uid) && !table.options.users.of(uid).is_elastic;
}

std::optional<OrderKey> first_with_time(const Table& table,
                                        const Device& device,
                                        const Lane& lane) {
  for (const OrderKey& key : lane.waiting)
    if (!is_used_up(device, table.at(key.id).uid)) return key;
  return std::nullopt;
}

Nanos earned_at(const Table& table, const Device& device, std::uint32_t uid) {
  const Allowance& allowance = device.allowances.at(uid);
  const double share_limit = table.options.users.of(uid).share_limit;
  const double missing = most_saved(share_limit) / 2 - allowance.seconds;
  return allowance.as_of + from_seconds(missing / share_limit) + micros(1);
}

std::optional<Nanos> used_up_at(const Table& table,
                                const Device& device,
                                std::uint32_t uid,
                                Nanos now) {
  const double share_limit = table.options.users.of(uid).share_limit;
  const double spent = static_cast<double>(num_leases(table, device, uid)) - share_limit;
  if (share_limit <= 0 || spent <= 0 || is_used_up(device, uid)) return std::nullopt;
  const auto found = device.allowances.find(uid);
  const double left =
      found == device.allowances.end() ? most_saved(share_limit) : found->second.seconds;
  return now + from_seconds(std::max(left, 0.0) / spent) + micros(1);
}

std::string share_limit_text(const Table& table,
                             const Device& device,
                             std::uint32_t uid,
                             Nanos now) {
  const UserOptions& user = table.options.users.of(uid);
  return fmt::format("{} is at the limit of {:g} % of the time, for {}{}",
                     table.options.users.label(uid), user.share_limit * 100,
                     to_string(std::max(earned_at(table, device, uid) - now, Nanos{})),
                     user.is_elastic ? ": others go before" : "");
}

}  // namespace gpushare::sched
