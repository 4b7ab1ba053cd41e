#include "csrc/sched/shares.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

namespace gpushare::sched {
namespace {

ClassTimes& times_of(Lane& lane, const Job& job) {
  return lane.times.at(static_cast<std::size_t>(job.priority));
}

bool is_of_its_class(const Job& other, const Job& job) {
  return other.id != job.id && other.priority == job.priority;
}

// The lane's holder, if it is another job of the same class; null: it is not.
const Job* rival_holder(const Table& table, const Lane& lane, const Job& job) {
  if (!lane.lease.has_value()) return nullptr;
  const Job& holder = table.at(lane.lease->job);
  return is_of_its_class(holder, job) ? &holder : nullptr;
}

// The first that waits of the job's user and class.
std::optional<OrderKey> first_of_user(const Device& device, const Lane& lane, const Job& job) {
  if (!device.policy->shares_by_user()) return std::nullopt;
  return lane.waiting.first_of(job.priority, job.uid);
}

// Without the job itself, which does not wait.
bool is_user_present(const Table& table, const Device& device, const Lane& lane, const Job& job) {
  const Job* const holder = rival_holder(table, lane, job);
  return first_of_user(device, lane, job).has_value() ||
         (holder != nullptr && holder->uid == job.uid);
}

// Raises that of the class to the least of the users who are present.
void raise_to_users(const Table& table, const Device& device, Lane& lane, wire::Priority priority) {
  ClassTimes& times = lane.times.at(static_cast<std::size_t>(priority));
  double least = std::numeric_limits<double>::infinity();
  const auto first = lane.waiting.first_of(priority);
  if (first.has_value() && device.policy->shares_by_user()) least = first->user_time;
  if (lane.lease.has_value()) {
    const Job& holder = table.at(lane.lease->job);
    if (holder.priority == priority) {
      least = std::min(least, times.users[holder.uid].virtual_time);
    }
  }
  if (least < std::numeric_limits<double>::infinity()) {
    times.of_users = std::max(times.of_users, least);
  }
}

// Raises that of the user's jobs to the least of those present, while one of them has the lane.
// Else all of them but those that have just closed their lease are behind it, and it stays.
void raise_to_jobs(Step& step, const Device& device, Lane& lane, const Job& job) {
  const Table& table = step.table();
  const Job* const holder = rival_holder(table, lane, job);
  if (holder == nullptr || holder->uid != job.uid) return;
  const Nanos time = step.now() - lane.lease->granted_at;
  double least = holder->requeued(time, step.now()).virtual_time;
  if (const auto first = first_of_user(device, lane, job)) {
    least = std::min(least, table.at(first->id).virtual_time);
  }
  double& of_jobs = times_of(lane, job).users[job.uid].of_jobs;
  of_jobs = std::max(of_jobs, least);
}

}  // namespace

void charge_users(Table& table, Nanos now) {
  for (Device& device : table.devices) {
    for (Lane& lane : device.lanes) {
      if (!lane.lease.has_value() || now <= lane.lease->charged_until) continue;
      const Job& holder = std::as_const(table).at(lane.lease->job);
      double& time = times_of(lane, holder).users[holder.uid].virtual_time;
      time +=
          to_seconds(now - lane.lease->charged_until) / table.options.users.of(holder.uid).weight;
      lane.lease->charged_until = now;
      if (!device.policy->shares_by_user()) continue;
      lane.waiting.set_user_time(holder.priority, holder.uid, time);
    }
  }
}

OrderKey order_key(const Device& device, const Job& job) {
  OrderKey key = device.policy->key(job);
  if (!device.policy->shares_by_user()) return key;
  const auto& users =
      Table::lane_of(device, job).times.at(static_cast<std::size_t>(job.priority)).users;
  const auto user = users.find(job.uid);
  key.user_time = user == users.end() ? 0 : user->second.virtual_time;
  return key;
}

void lift(Step& step, Job& job) {
  Device& device = step.table().device_of(job);
  Lane& lane = Table::lane_of(device, job);
  UserTimes& user = times_of(lane, job).users[job.uid];
  if (!is_user_present(step.table(), device, lane, job)) {
    raise_to_users(step.table(), device, lane, job.priority);
    user.virtual_time = std::max(user.virtual_time, times_of(lane, job).of_users);
  }
  raise_to_jobs(step, device, lane, job);
  job.virtual_time = std::max(job.virtual_time, user.of_jobs);
}

void note_granted(Lane& lane, const Job& job) {
  ClassTimes& times = times_of(lane, job);
  UserTimes& user = times.users[job.uid];
  times.of_users = std::max(times.of_users, user.virtual_time);
  user.of_jobs = std::max(user.of_jobs, job.virtual_time);
}

void note_charged(Step& step, const Device& device, Lane& lane, const Job& job) {
  double least = job.virtual_time;
  if (const auto first = first_of_user(device, lane, job)) {
    least = std::min(least, std::as_const(step).table().at(first->id).virtual_time);
  }
  double& of_jobs = times_of(lane, job).users[job.uid].of_jobs;
  of_jobs = std::max(of_jobs, least);
}

Ahead ahead_of(Step& step, const Job& job) {
  Device& device = step.table().device_of(job);
  Lane& lane = Table::lane_of(device, job);
  raise_to_users(step.table(), device, lane, job.priority);
  raise_to_jobs(step, device, lane, job);
  const ClassTimes& times = times_of(lane, job);
  const UserTimes& user = times_of(lane, job).users[job.uid];
  return {.user = user.virtual_time - times.of_users, .job = job.virtual_time - user.of_jobs};
}

void stay_ahead(Step& step, Job& job, const Ahead& ahead) {
  Device& device = step.table().device_of(job);
  Lane& lane = Table::lane_of(device, job);
  ClassTimes& times = times_of(lane, job);
  UserTimes& user = times.users[job.uid];
  if (!is_user_present(step.table(), device, lane, job)) {
    raise_to_users(step.table(), device, lane, job.priority);
    user.virtual_time = times.of_users + ahead.user;
  }
  raise_to_jobs(step, device, lane, job);
  job.virtual_time = user.of_jobs + ahead.job;
}

}  // namespace gpushare::sched
