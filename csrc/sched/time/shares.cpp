// How virtual times are kept fair when jobs and users come and go.
//
// Each level has its clock: of_users for the users of a class, of_jobs for the jobs of a user. A
// clock never falls. It follows the least virtual time of those who are present, that is, who wait
// or hold a lease. A newcomer starts at the clock, or where it stood if that is later. So a job
// that was away for an hour does not get the lane for an hour, and a job that had more than its
// share does not lose its debt by leaving.
//
// A user is charged while his job runs, in each step. A job is charged when its lease ends; before
// that its key is computed as if the lease ended now (Job::requeued).
//
// The users' times are kept under all policies. Only policies that share by user put them into
// keys.
#include "csrc/sched/time/shares.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "csrc/sched/job/lookup.h"

namespace gpushare::sched {
namespace {

// The lane whose times count for the jobs of this one.
Lane& clock_of(Device& device, Lane& lane) {
  return device.has_one_line() ? device.lanes.front() : lane;
}

ClassTimes& times_of(Device& device, Lane& lane, wire::Priority priority) {
  return clock_of(device, lane).times.at(static_cast<std::size_t>(priority));
}

// Made if there is none yet: a user's time begins at 0, and is lifted when his first job comes.
UserTimes& user_of(Device& device, Lane& lane, const Job& job) {
  return times_of(device, lane, job.settings.priority).users[job.who.uid];
}

// Whose jobs the lane's jobs share time with.
bool is_peer(const Device& device, const Lane& lane, const Lane& other) {
  return device.has_one_line() || other.id == lane.id;
}

// Holders beside the job itself, of its user and class.
std::vector<const Lane*> rival_lanes(const Table& table, const Lane& lane, const Job& job) {
  std::vector<const Lane*> lanes;
  for (const Lane& other : table.device.lanes) {
    if (!is_peer(table.device, lane, other) || !other.lease.has_value()) continue;
    const Job& holder = table.at(other.lease->job());
    const bool is_rival = holder.id != job.id &&
                          holder.settings.priority == job.settings.priority &&
                          holder.who.uid == job.who.uid;
    if (is_rival) lanes.push_back(&other);
  }
  return lanes;
}

// The first that waits of the job's user and class.
std::optional<OrderKey> first_of_user(const Device& device, const Lane& lane, const Job& job) {
  std::optional<OrderKey> first;
  if (!do_users_share(device)) return first;
  for (const Lane& other : device.lanes) {
    if (!is_peer(device, lane, other)) continue;
    const auto key = other.waiting.first_of(job.settings.priority, job.who.uid);
    if (key.has_value() && (!first.has_value() || *key < *first)) first = key;
  }
  return first;
}

// Without the job itself, which does not wait.
bool is_user_present(const Table& table, const Lane& lane, const Job& job) {
  return first_of_user(table.device, lane, job).has_value() ||
         !rival_lanes(table, lane, job).empty();
}

// Raises that of the class to the least of the users who are present.
void raise_to_users(Table& table, Lane& lane, wire::Priority priority) {
  Device& device = table.device;
  ClassTimes& times = times_of(device, lane, priority);
  double least = std::numeric_limits<double>::infinity();
  for (const Lane& other : device.lanes) {
    if (!is_peer(device, lane, other)) continue;
    const auto first = other.waiting.first_of(priority);
    if (first.has_value() && do_users_share(device)) {
      least = std::min(least, first->user_time);
    }
    if (!other.lease.has_value()) continue;
    const Job& holder = table.at(other.lease->job());
    if (holder.settings.priority == priority) {
      least = std::min(least, times.users[holder.who.uid].virtual_time);
    }
  }
  if (least < std::numeric_limits<double>::infinity()) {
    times.of_users = std::max(times.of_users, least);
  }
}

// Raises that of the user's jobs to the least of those present, while one of them has the lane.
// Else all of them but those that have just closed their lease are behind it, and it stays.
void raise_to_jobs(Step& step, Lane& lane, const Job& job) {
  const Table& table = step.table();
  const std::vector<const Lane*> rivals = rival_lanes(table, lane, job);
  if (rivals.empty()) return;
  double least = std::numeric_limits<double>::infinity();
  for (const Lane* const rival : rivals) {
    const Nanos time = step.now() - rival->lease->since();
    const Job& holder = table.at(rival->lease->job());
    least = std::min(least, holder.requeued(time, step.now()).virtual_time);
  }
  if (const auto first = first_of_user(step.device(), lane, job)) {
    least = std::min(least, table.at(first->id).served.virtual_time);
  }
  double& of_jobs = user_of(step.device(), lane, job).of_jobs;
  of_jobs = std::max(of_jobs, least);
}

void add_user_time(const Table& table, const Job& job, Nanos time, OrderKey& key) {
  if (!do_users_share(table.device)) return;
  key.user_time += to_seconds(time) / table.options.users.of(job.who.uid).weight;
}

}  // namespace

bool do_users_share(const Device& device) { return device.policy->sharing().by_user; }

// Users are charged as time passes, and not when leases end. Otherwise a user whose job has just
// begun would look as if he had had nothing, and his second job would go first in another lane.
void charge_users(Table& table, Nanos now) {
  Device& device = table.device;
  for (Lane& lane : device.lanes) {
    if (!lane.is_running() || now <= lane.lease->charged_until) continue;
    const Job& holder = std::as_const(table).at(lane.lease->job());
    double& time = user_of(device, lane, holder).virtual_time;
    time +=
        to_seconds(now - lane.lease->charged_until) / table.options.users.of(holder.who.uid).weight;
    lane.lease->charged_until = now;
    if (!do_users_share(device)) continue;
    for (Lane& other : device.lanes) {
      if (!is_peer(device, lane, other)) continue;
      other.waiting.set_user_time(holder.settings.priority, holder.who.uid, time);
    }
  }
}

// The policy's own key knows nothing of users' times, because those change while the job waits. So
// the time of the job's user is put in here, as the job's lane has it.
OrderKey order_key(const Device& device, const Standing& job) {
  OrderKey key = device.policy->key(job);
  if (!do_users_share(device)) return key;
  const Lane& clock =
      device.has_one_line() ? device.lanes.front() : device.lanes.at(job.in_lane.value);
  const auto& users = clock.times.at(static_cast<std::size_t>(job.priority)).users;
  key.user_time = value_or(users, job.uid, UserTimes{}).virtual_time;
  return key;
}

OrderKey order_key(const Device& device, const Job& job) {
  return order_key(device, job.standing());
}

OrderKey requeued_key(const Table& table, const Lane& lane, Nanos now) {
  const Job& holder = table.at(lane.lease->job());
  return order_key(table.device, holder.requeued(now - lane.lease->since(), now));
}

// The rest of the iteration of the holder counts too. A waiter that is before the holder now, and
// not after one iteration more, would be asked to make way at once.
OrderKey boundary_key(const Table& table, const Lane& lane, Nanos now) {
  const Job& holder = table.at(lane.lease->job());
  const Nanos held = now - lane.lease->since() + holder.measured.iteration;
  OrderKey key = order_key(table.device, holder.requeued(held, now));
  add_user_time(table, holder, holder.measured.iteration, key);  // until now he is charged already
  return key;
}

OrderKey key_after(const Table& table, const Job& job, Nanos time, Nanos now) {
  OrderKey key = order_key(table.device, job.requeued(time, now));
  add_user_time(table, job, time, key);
  return key;
}

// A job that comes is lifted twice: its user to the users present, unless another job of his is
// there, and then the job to the jobs of its user.
void lift(Step& step, Job& job) {
  Device& device = step.device();
  Lane& lane = device.lane_of(job);
  UserTimes& user = user_of(device, lane, job);
  if (!is_user_present(step.table(), lane, job)) {
    raise_to_users(step.table(), lane, job.settings.priority);
    user.virtual_time =
        std::max(user.virtual_time, times_of(device, lane, job.settings.priority).of_users);
  }
  raise_to_jobs(step, lane, job);
  job.served.virtual_time = std::max(job.served.virtual_time, user.of_jobs);
}

// The job that is granted a lease had the least virtual time of those present, so the clocks have
// come to its time.
void note_granted(Device& device, Lane& lane, const Job& job) {
  ClassTimes& times = times_of(device, lane, job.settings.priority);
  UserTimes& user = times.users[job.who.uid];
  times.of_users = std::max(times.of_users, user.virtual_time);
  user.of_jobs = std::max(user.of_jobs, job.served.virtual_time);
}

// The job has had its turn. The clock of its user's jobs follows the least of those who are left,
// the job itself among them.
void note_charged(Step& step, Lane& lane, const Job& job) {
  double least = job.served.virtual_time;
  if (const auto first = first_of_user(step.device(), lane, job)) {
    least = std::min(least, std::as_const(step).table().at(first->id).served.virtual_time);
  }
  double& of_jobs = user_of(step.device(), lane, job).of_jobs;
  of_jobs = std::max(of_jobs, least);
  // Users outlive their jobs: who comes next begins where this one stands, not where he began.
  raise_to_users(step.table(), lane, job.settings.priority);
}

// A user who is ahead of the others is kept although he has no job: with a new process he would
// otherwise begin at their time, and have what he had twice.
void forget_absent_users(Table& table) {
  std::set<std::uint32_t> present;
  for (const auto& [id, job] : table.jobs)
    present.insert(job.who.uid);
  for (Lane& lane : table.device.lanes) {
    for (ClassTimes& times : lane.times) {
      std::erase_if(times.users, [&](const auto& entry) {
        const auto& [uid, user] = entry;
        return !present.contains(uid) && user.virtual_time <= times.of_users;
      });
    }
  }
}

// When the policy begins to pack, each job keeps its distance to its user's clock in the lane that
// it was in. When packing ends, all lanes begin with the times of the device.
void share_clock(Step& step) {
  Device& device = step.device();
  if (!device.has_one_line()) {
    const auto clock = device.lanes.front().times;
    for (Lane& lane : device.lanes)
      lane.times = clock;
    return;
  }
  std::vector<JobId> ids;
  for (const auto& [id, job] : std::as_const(step).table().jobs)
    ids.push_back(id);
  for (Lane& lane : device.lanes) {
    for (std::size_t p = 0; p < lane.times.size(); ++p) {
      for (const auto& [uid, times] : std::map(lane.times.at(p).users)) {
        const auto priority = static_cast<wire::Priority>(p);
        const double time = times_of(device, lane, priority).users[uid].virtual_time;
        lane.waiting.set_user_time(priority, uid, time);
      }
    }
  }
  for (const JobId id : ids) {
    Job& job = step.table().at(id);
    auto& users =
        device.lane_of(job).times.at(static_cast<std::size_t>(job.settings.priority)).users;
    job.served.virtual_time +=
        user_of(device, device.lanes.front(), job).of_jobs - users[job.who.uid].of_jobs;
  }
}

// The clocks are brought up to date first, so that the distance is one of now.
Ahead ahead_of(Step& step, const Job& job) {
  Device& device = step.device();
  Lane& lane = device.lane_of(job);
  raise_to_users(step.table(), lane, job.settings.priority);
  raise_to_jobs(step, lane, job);
  const ClassTimes& times = times_of(device, lane, job.settings.priority);
  const UserTimes& user = user_of(device, lane, job);
  return {.user = user.virtual_time - times.of_users,
          .job = job.served.virtual_time - user.of_jobs};
}

// A user with other jobs in the new place keeps the time that he has there. Only a user who is new
// there is put as far ahead as he was.
void stay_ahead(Step& step, Job& job, const Ahead& ahead) {
  Lane& lane = step.device().lane_of(job);
  ClassTimes& times = times_of(step.device(), lane, job.settings.priority);
  UserTimes& user = times.users[job.who.uid];
  if (!is_user_present(step.table(), lane, job)) {
    raise_to_users(step.table(), lane, job.settings.priority);
    user.virtual_time = times.of_users + ahead.user;
  }
  raise_to_jobs(step, lane, job);
  job.served.virtual_time = user.of_jobs + ahead.job;
}

}  // namespace gpushare::sched
