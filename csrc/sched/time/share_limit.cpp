// Limits on time are kept as allowances (a token bucket). An allowance earns its share of each
// second, saves up to one second's worth, and open leases spend it. Once it is empty, it stays used
// up until half of it is earned again: otherwise a job at its limit would get turns too short for
// their switches.
//
// A user's allowance and a job's own are kept apart, and a job is set back by the worse of the two.
// A hard limit bars the job. An elastic limit only puts it behind all jobs that are set back less.
// Time beyond its savings that no such job wanted is not charged to it.
//
// Full allowances are not stored. A user who comes back later finds a full one, which is the same.
#include "csrc/sched/time/share_limit.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "csrc/sched/job/lookup.h"
#include "csrc/sched/memory/room.h"
#include "csrc/sched/memory/user_room.h"

namespace gpushare::sched {
namespace {

constexpr double kBurst = 1;  // seconds

double most_saved(double share_limit) { return share_limit * kBurst; }

Nanos from_seconds(double time) { return Nanos{static_cast<std::int64_t>(time * 1e9)}; }

// Leases that his jobs have open.
std::size_t num_leases(const Table& table, std::uint32_t uid) {
  return static_cast<std::size_t>(
      std::count_if(table.device.lanes.begin(), table.device.lanes.end(), [&](const Lane& lane) {
        return lane.is_running() && table.at(lane.lease->job()).who.uid == uid;
      }));
}

// Each is an allowance with the share that it earns.
struct Limit {
  double share = 0;
  bool is_elastic = false;
  const Allowance* allowance = nullptr;  // null: all is saved

  [[nodiscard]] bool is_used_up() const { return allowance != nullptr && allowance->is_used_up; }
  [[nodiscard]] Nanos earned_at() const {
    const double missing = most_saved(share) / 2 - allowance->seconds;
    return allowance->as_of + from_seconds(missing / share) + micros(1);
  }
  // When the allowance is used up with so many leases open; nothing: never.
  [[nodiscard]] std::optional<Nanos> used_up_at(std::size_t num_leases, Nanos now) const {
    const double spent = static_cast<double>(num_leases) - share;
    if (share <= 0 || spent <= 0 || is_used_up()) return std::nullopt;
    const double most = most_saved(share);
    const double left = allowance == nullptr ? most : std::min(allowance->seconds, most);
    return now + from_seconds(std::max(left, 0.0) / spent) + micros(1);
  }
};

template <typename Allowances, typename Key>
Limit make_limit(double share, bool is_elastic, const Allowances& allowances, const Key& key) {
  return {share, is_elastic, share > 0 ? find_in(allowances, key) : nullptr};
}

// The two limits that may set a job back: its user's and its own.
Limit users_limit(const Table& table, const Job& job) {
  const UserOptions& user = table.options.users.of(job.who.uid);
  return make_limit(user.share_limit, user.is_elastic, table.device.allowances, job.who.uid);
}

Limit own_limit(const Device& device, const Job& job) {
  return make_limit(job.settings.share_limit, job.settings.is_elastic, device.job_allowances,
                    job.id);
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

std::array<Limit, 2> limits_of(const Table& table, const Job& job) {
  return {users_limit(table, job), own_limit(table.device, job)};
}

// Whether the first of two limits is told to people. A limit that keeps the job from the device is
// told before one that only lets others go first. pre: one of them is used up.
bool is_said_before(const Limit& limit, const Limit& other) {
  if (!limit.is_used_up() || !other.is_used_up()) return limit.is_used_up();
  if (limit.is_elastic != other.is_elastic) return other.is_elastic;
  return limit.earned_at() >= other.earned_at();
}

bool could_begin(const Table& table, const Job& job) {
  const Bytes growth = growth_of(table.device, table.device.lane_of(job), job);
  return !job.room.revoke.has_value() && may_come_to_fit(table, job, growth);
}

// At an elastic limit a lease goes on while nobody else wants the time: that neither spends nor
// earns.
struct Spending {
  const Table& table;
  const Lane& lane;
  double used = 0;
  Nanos now;

  // `than`: how far it sets back who has used it up.
  void take_from(Allowance& allowance, bool is_elastic, Setback than) const {
    if (is_elastic && allowance.seconds < used && !is_time_wanted(table, lane, than)) {
      allowance.seconds = std::min(allowance.seconds, 0.0);
      allowance.as_of = now;
    } else {
      allowance.seconds -= used;
    }
  }
};

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
    if (allowance.seconds < most / 2 || !allowance.is_used_up) continue;
    allowance.is_used_up = false;
    allowance.gives_since = now;
  }
  // A new one is full too.
  std::erase_if(allowances, [&](const auto& entry) {
    const double share = share_of(entry.first);
    return share <= 0 || entry.second.seconds >= most_saved(share);
  });
}

}  // namespace

// Open leases spend what they used since the last step first, and then all allowances earn for the
// same time. A gang spends once for its user, and once for each of its jobs that has a limit.
void settle_allowances(Table& table, Nanos now) {
  const Table& known = table;
  const Users& users = table.options.users;
  Device& device = table.device;
  for (const Lane& lane : device.lanes) {
    if (!lane.is_running()) continue;
    const Job& job = known.at(lane.lease->job());
    const Nanos since = std::min(lane.lease->charged_until, now);
    const double used = to_seconds(now - since);
    const Spending spending{known, lane, used, now};
    if (const UserOptions& user = users.of(job.who.uid); user.share_limit > 0) {
      spending.take_from(allowance_of(device.allowances, job.who.uid, user.share_limit, since),
                         user.is_elastic, Setback::kByUser);
    }
    for (const JobId id : holders_of_lane(lane)) {
      const Job& holder = known.at(id);
      if (holder.settings.share_limit <= 0) continue;
      spending.take_from(
          allowance_of(device.job_allowances, id, holder.settings.share_limit, since),
          holder.settings.is_elastic, Setback::kByOwn);
    }
  }
  earn(device.allowances, [&](std::uint32_t uid) { return users.of(uid).share_limit; }, now);
  const auto share_of = [&](JobId id) {
    const Job* const job = known.find(id);
    return job == nullptr ? 0.0 : job->settings.share_limit;
  };
  earn(device.job_allowances, share_of, now);
}

bool is_user_used_up(const Device& device, std::uint32_t uid) {
  const Allowance* const allowance = find_in(device.allowances, uid);
  return allowance != nullptr && allowance->is_used_up;
}

bool is_own_used_up(const Device& device, const Job& job) {
  return own_limit(device, job).is_used_up();
}

bool is_used_up(const Device& device, const Job& job) {
  return is_user_used_up(device, job.who.uid) || is_own_used_up(device, job);
}

// The worse of the two limits counts. A limit of the job's own is worse than its user's, because it
// was set for this job.
Setback setback(const Table& table, const Job& job) {
  const Limit users = users_limit(table, job);
  const Limit own = own_limit(table.device, job);
  const bool is_barred =
      (users.is_used_up() && !users.is_elastic) || (own.is_used_up() && !own.is_elastic);
  if (is_barred) return Setback::kBarred;
  if (own.is_used_up()) return Setback::kByOwn;
  return users.is_used_up() ? Setback::kByUser : Setback::kNone;
}

std::optional<OrderKey> first_with_time(const Table& table, const Lane& lane, wire::Priority last) {
  for (const OrderKey& key : lane.waiting) {
    if (key.priority > last) break;
    if (!is_used_up(table.device, table.at(key.id))) return key;
  }
  return std::nullopt;
}

std::optional<OrderKey> first_allowed(const Table& table, const Lane& lane, Setback most) {
  return first_set_back_least(table, lane, [](const Job&) { return true; }, most);
}

// A waiter that could not begin anyhow wants no time: the holder would make way for nobody.
bool is_time_wanted(const Table& table, const Lane& lane, Setback than) {
  const Device& device = table.device;
  const auto is_wanted_in = [&](const Lane& line) {
    return std::any_of(line.waiting.begin(), line.waiting.end(), [&](const OrderKey& key) {
      const Job& job = table.at(key.id);
      return setback(table, job) < than && could_begin(table, job);
    });
  };
  if (!device.has_one_line()) return is_wanted_in(lane);
  return std::any_of(device.lanes.begin(), device.lanes.end(), is_wanted_in);
}

// Steps are rare while nothing happens, so an allowance may have earned enough since the last one.
// People are told what the next step will find.
bool is_at_hard_limit(const Table& table, const Job& job, Nanos now) {
  const auto limits = limits_of(table, job);
  return std::any_of(limits.begin(), limits.end(), [now](const Limit& limit) {
    return limit.is_used_up() && !limit.is_elastic && now < limit.earned_at();
  });
}

// If both limits are used up, the job is looked at when the first of them gives again: it may be
// set back less then.
Nanos earned_at(const Table& table, const Job& job) {
  const Limit users = users_limit(table, job);
  const Limit own = own_limit(table.device, job);
  if (!users.is_used_up()) return own.earned_at();
  return own.is_used_up() ? std::min(users.earned_at(), own.earned_at()) : users.earned_at();
}

Nanos within_limits_since(const Table& table, const Job& job, Nanos now) {
  if (is_used_up(table.device, job)) return now;
  Nanos since;
  for (const Limit& limit : limits_of(table, job))
    if (limit.allowance != nullptr) since = std::max(since, limit.allowance->gives_since);
  return since;
}

std::optional<Nanos> used_up_at(const Table& table, const Job& job, Nanos now) {
  const auto users = users_limit(table, job).used_up_at(num_leases(table, job.who.uid), now);
  const auto own = own_limit(table.device, job).used_up_at(1, now);
  if (users.has_value() && own.has_value()) return std::min(*users, *own);
  return users.has_value() ? users : own;
}

// The limit that keeps the job away for longest is named, and a hard one before an elastic one.
std::string share_limit_text(const Table& table, const Job& job, Nanos now) {
  const Limit users = users_limit(table, job);
  const Limit own = own_limit(table.device, job);
  const bool is_own = is_said_before(own, users);
  const Limit& limit = is_own ? own : users;
  return fmt::format("{} is at the limit of {:g} % of the time, for {}{}",
                     is_own ? "job " + label(job) : table.options.users.label(job.who.uid),
                     limit.share * 100, to_string(std::max(limit.earned_at() - now, Nanos{})),
                     limit.is_elastic ? ": others go before" : "");
}

}  // namespace gpushare::sched
