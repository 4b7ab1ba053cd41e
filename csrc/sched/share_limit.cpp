#include "csrc/sched/share_limit.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/room.h"
#include "csrc/sched/user_room.h"

namespace gpushare::sched {
namespace {

constexpr double kBurst = 1;  // seconds

double most_saved(double share_limit) { return share_limit * kBurst; }

Nanos from_seconds(double time) { return Nanos{static_cast<std::int64_t>(time * 1e9)}; }

// Leases that his jobs have open.
std::size_t num_leases(const Table& table, const Device& device, std::uint32_t uid) {
  return static_cast<std::size_t>(
      std::count_if(device.lanes.begin(), device.lanes.end(), [&](const Lane& lane) {
        return lane.lease.has_value() && table.at(lane.lease->job).uid == uid;
      }));
}

template <typename Allowances, typename Key>
const Allowance* find(const Allowances& allowances, const Key& key) {
  const auto found = allowances.find(key);
  return found == allowances.end() ? nullptr : &found->second;
}

// Each is an allowance with the share that it earns.
struct Limit {
  double share = 0;
  const Allowance* allowance = nullptr;  // null: all is saved

  [[nodiscard]] bool is_used_up() const { return allowance != nullptr && allowance->is_used_up; }
  [[nodiscard]] Nanos earned_at() const {
    const double missing = most_saved(share) / 2 - allowance->seconds;
    return allowance->as_of + from_seconds(missing / share) + micros(1);
  }
  // With so many leases open.
  [[nodiscard]] std::optional<Nanos> used_up_at(std::size_t num_leases, Nanos now) const {
    const double spent = static_cast<double>(num_leases) - share;
    if (share <= 0 || spent <= 0 || is_used_up()) return std::nullopt;
    const double most = most_saved(share);
    const double left = allowance == nullptr ? most : std::min(allowance->seconds, most);
    return now + from_seconds(std::max(left, 0.0) / spent) + micros(1);
  }
};

template <typename Allowances, typename Key>
Limit make_limit(double share, const Allowances& allowances, const Key& key) {
  return {share, share > 0 ? find(allowances, key) : nullptr};
}

Limit users_limit(const Table& table, const Device& device, const Job& job) {
  return make_limit(table.options.users.of(job.uid).share_limit, device.allowances, job.uid);
}

Limit own_limit(const Device& device, const Job& job) {
  return make_limit(job.share_limit, device.job_allowances, job.id);
}

// A new one is full since `since`. The limit may have been a higher one.
template <typename Allowances, typename Key>
Allowance& allowance_of(Allowances& allowances, const Key& key, double share, Nanos since) {
  const double most = most_saved(share);
  Allowance& own =
      allowances.try_emplace(key, Allowance{.seconds = most, .as_of = since}).first->second;
  own.seconds = std::min(own.seconds, most);
  return own;
}

bool could_begin(const Device& device, const Lane& lane, const Job& job) {
  return !job.revoke.has_value() && !is_used_up(device, job) &&
         is_within_user_limit(device, job, growth_of(device, lane, job));
}

// At an elastic limit a lease goes on while nobody else wants the time: that neither spends nor
// earns.
void spend_of_user(const Table& table,
                   const Device& device,
                   const Lane& lane,
                   double used,
                   Nanos now,
                   Allowance& own) {
  const bool is_elastic = table.options.users.of(table.at(lane.lease->job).uid).is_elastic;
  if (is_elastic && own.seconds < used && !is_time_wanted(table, device, lane)) {
    own.seconds = std::min(own.seconds, 0.0);
    own.as_of = now;
  } else {
    own.seconds -= used;
  }
}

// share_of(key): 0 where there is no limit any more.
template <typename Allowances, typename ShareOf>
void earn(Allowances& allowances, const ShareOf& share_of, Nanos now) {
  for (auto& [key, allowance] : allowances) {
    const double share = share_of(key);
    const double most = most_saved(share);
    allowance.seconds += share * to_seconds(now - allowance.as_of);
    allowance.seconds = std::min(allowance.seconds, most);
    allowance.as_of = now;
    if (allowance.seconds <= 0) allowance.is_used_up = true;
    if (allowance.seconds >= most / 2) allowance.is_used_up = false;
  }
  // A new one is full too.
  std::erase_if(allowances, [&](const auto& entry) {
    const double share = share_of(entry.first);
    return share <= 0 || entry.second.seconds >= most_saved(share);
  });
}

}  // namespace

void settle_allowances(Table& table, Nanos now) {
  const Table& known = table;
  const Users& users = table.options.users;
  for (Device& device : table.devices) {
    for (const Lane& lane : device.lanes) {
      if (!lane.lease.has_value()) continue;
      const Job& job = known.at(lane.lease->job);
      const Nanos since = std::min(lane.lease->charged_until, now);
      const double used = to_seconds(now - since);
      const double users_share = users.of(job.uid).share_limit;
      if (users_share > 0) {
        spend_of_user(known, device, lane, used, now,
                      allowance_of(device.allowances, job.uid, users_share, since));
      }
      if (job.share_limit > 0) {
        allowance_of(device.job_allowances, job.id, job.share_limit, since).seconds -= used;
      }
    }
    earn(device.allowances, [&](std::uint32_t uid) { return users.of(uid).share_limit; }, now);
    const auto share_of = [&](JobId id) {
      const Job* const job = known.find(id);
      return job == nullptr ? 0.0 : job->share_limit;
    };
    earn(device.job_allowances, share_of, now);
  }
}

bool is_user_used_up(const Device& device, std::uint32_t uid) {
  const Allowance* const allowance = find(device.allowances, uid);
  return allowance != nullptr && allowance->is_used_up;
}

bool is_used_up(const Device& device, const Job& job) {
  return is_user_used_up(device, job.uid) || own_limit(device, job).is_used_up();
}

bool is_at_hard_limit(const Table& table, const Device& device, const Job& job) {
  const bool is_elastic = table.options.users.of(job.uid).is_elastic;
  return own_limit(device, job).is_used_up() || (is_user_used_up(device, job.uid) && !is_elastic);
}

std::optional<OrderKey> first_with_time(const Table& table,
                                        const Device& device,
                                        const Lane& lane,
                                        wire::Priority last) {
  for (const OrderKey& key : lane.waiting) {
    if (key.priority > last) break;
    if (!is_used_up(device, table.at(key.id))) return key;
  }
  return std::nullopt;
}

std::optional<OrderKey> first_allowed(const Table& table, const Device& device, const Lane& lane) {
  if (const auto first = first_with_time(table, device, lane)) return first;
  for (const OrderKey& key : lane.waiting)
    if (!is_at_hard_limit(table, device, table.at(key.id))) return key;
  return std::nullopt;
}

bool is_time_wanted(const Table& table, const Device& device, const Lane& lane) {
  return std::any_of(lane.waiting.begin(), lane.waiting.end(), [&](const OrderKey& key) {
    return could_begin(device, lane, table.at(key.id));
  });
}

Nanos earned_at(const Table& table, const Device& device, const Job& job) {
  Nanos at;
  for (const Limit& limit : {users_limit(table, device, job), own_limit(device, job)})
    if (limit.is_used_up()) at = std::max(at, limit.earned_at());
  return at;
}

std::optional<Nanos> used_up_at(const Table& table,
                                const Device& device,
                                const Job& job,
                                Nanos now) {
  const auto users =
      users_limit(table, device, job).used_up_at(num_leases(table, device, job.uid), now);
  const auto own = own_limit(device, job).used_up_at(1, now);
  if (users.has_value() && own.has_value()) return std::min(*users, *own);
  return users.has_value() ? users : own;
}

std::string share_limit_text(const Table& table, const Device& device, const Job& job, Nanos now) {
  const Limit users = users_limit(table, device, job);
  const Limit own = own_limit(device, job);
  const bool is_own =
      own.is_used_up() && !(users.is_used_up() && own.earned_at() < users.earned_at());
  const Limit& limit = is_own ? own : users;
  const bool is_elastic = !is_own && table.options.users.of(job.uid).is_elastic;
  return fmt::format("{} is at the limit of {:g} % of the time, for {}{}",
                     is_own ? "job " + label(job) : table.options.users.label(job.uid),
                     limit.share * 100, to_string(std::max(limit.earned_at() - now, Nanos{})),
                     is_elastic ? ": others go before" : "");
}

}  // namespace gpushare::sched
