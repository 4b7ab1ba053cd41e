// What a person may change of a running job, and what follows.
//
// A change is refused as a whole, or made as a whole, in this order: whose job it is, whether its
// numbers are possible, what the coordinator's owner allows this user to set, whether it ends a
// pause of somebody else, and whether the job's live memory fits under the new limit. Only what the
// change asks for is held against the user's caps. So a job keeps what the owner gave it by hand.
//
// All jobs of a gang are changed together, since none of them can go on without the others.
//
// A job in line keeps its place as far as it can. In a new class it is as far ahead of the others
// as it was in the old one. With a new weight, the time that it was ahead is counted over the new
// weight, so that a change neither pays nor costs at once.
#include "csrc/sched/events/change.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/sched/job/ranges.h"
#include "csrc/sched/memory/limit.h"
#include "csrc/sched/table/options.h"
#include "csrc/sched/time/shares.h"
#include "csrc/sched/turns/gang.h"
#include "csrc/sched/turns/line.h"
#include "csrc/wire/coordinator_messages.h"

namespace gpushare::sched {
namespace {

Status refuse(std::string reason) { return {StatusCode::kInvalidArgument, std::move(reason)}; }

Status check_right(const Job& job, const Requester& by) {
  if (by.may_change_all || by.uid == job.who.uid) return {};
  return refuse(
      fmt::format("user {} may not change job {} of user {}", by.uid, label(job), job.who.uid));
}

// Whoever may change all jobs has a reason to pause one, and the job's own user may not end that.
Status check_resume(const Job& job, const wire::Changes& changes, const Requester& by) {
  const bool is_resume = !changes.is_paused.value_or(true);
  if (!is_resume || by.may_change_all || job.settings.paused_by.value_or(by.uid) == by.uid)
    return {};
  return refuse(fmt::format("user {} may not resume job {}, which user {} has paused", by.uid,
                            label(job), *job.settings.paused_by));
}

// Whether a user may set so much himself. Whoever owns the coordinator may give more.
Status check_caps(const Users& users,
                  const Job& job,
                  const wire::Changes& changes,
                  const Requester& by) {
  if (by.may_change_all) return {};
  // Only what this change asks for is looked at: a job may keep what the owner has given it by
  // hand.
  wire::Priority priority = changes.priority.value_or(wire::Priority::kOpportunistic);
  double weight = changes.weight.value_or(kMinWeight);
  const std::string capped = cap_wish(users, job.who.uid, priority, weight);
  if (capped.empty()) return {};
  return refuse(fmt::format("{}. Who owns the coordinator may set more", capped));
}

template <typename Amount>
std::string or_none(Amount amount) {
  return amount > Amount{} ? to_string(amount) : std::string("none");
}

std::string share_or_none(double share) {
  return share > 0 ? fmt::format("{:g} %", share * 100) : std::string("none");
}

// "weight 1 -> 2, memory_limit none -> 500.0 MiB by user 7"
std::string text_of(const Job& job, const wire::Changes& changes, std::uint32_t by) {
  std::vector<std::string> texts;
  if (changes.priority) {
    texts.push_back(fmt::format("priority {} -> {}", wire::name_of(job.settings.priority),
                                wire::name_of(*changes.priority)));
  }
  if (changes.weight) {
    texts.push_back(fmt::format("weight {} -> {}", job.settings.weight, *changes.weight));
  }
  if (changes.memory_limit) {
    texts.push_back(fmt::format("memory_limit {} -> {}", or_none(job.settings.memory_limit),
                                or_none(*changes.memory_limit)));
  }
  if (changes.deadline) {
    texts.push_back(fmt::format("deadline {} -> {}", or_none(job.settings.deadline),
                                or_none(*changes.deadline)));
  }
  if (changes.share_limit) {
    texts.push_back(fmt::format("share_limit {} -> {}", share_or_none(job.settings.share_limit),
                                share_or_none(*changes.share_limit)));
  }
  if (changes.is_elastic) texts.emplace_back(*changes.is_elastic ? "elastic" : "hard");
  if (changes.is_paused) texts.emplace_back(*changes.is_paused ? "paused" : "resumed");
  return fmt::format("{} by user {}", fmt::join(texts, ", "), by);
}

// The job is as far ahead of the others, or behind them, as it was in the old class (shares.h).
void change_class(Step& step, Job& job, wire::Priority priority) {
  const Ahead ahead = ahead_of(step, job);
  job.settings.priority = priority;
  stay_ahead(step, job, ahead);
}

// A lease that the job wants while it is paused is remembered, and it joins the line when it is
// resumed.
void pause(Step& step, Job& job, std::uint32_t by) {
  if (!job.settings.is_paused()) job.settings.paused_at = step.now();
  // The pause of another user stays his, or the job's own user could take it over and end it.
  if (!job.settings.is_paused() || by != job.who.uid) job.settings.paused_by = by;
  step_aside(step, job);
}

void resume(Step& step, Job& job) {
  job.settings.paused_by.reset();
  step_back(step, job);
}

// How far the job is ahead of the others is time over its old weight, and becomes the same time
// over the new one.
void change_weight(Step& step, Job& job, double weight) {
  const double ahead = ahead_of(step, job).job;
  if (ahead > 0) job.served.virtual_time += ahead * (job.settings.weight / weight - 1);
}

// 0: none, or it stays as it is.
Bytes new_hard_limit(const Job& job, const wire::Changes& changes) {
  const bool is_new = changes.memory_limit.has_value() || changes.is_elastic.has_value();
  if (!is_new || changes.is_elastic.value_or(job.settings.is_elastic)) return Bytes{0};
  return changes.memory_limit.value_or(job.settings.memory_limit);
}

// Weight and class first, as both ask how far the job is ahead under the old settings.
void apply(Step& step, Job& job, const wire::Changes& changes, std::uint32_t by) {
  if (changes.weight) change_weight(step, job, *changes.weight);
  if (changes.priority && *changes.priority != job.settings.priority) {
    change_class(step, job, *changes.priority);
  }
  changes.apply_to(job.settings);
  // The job may be able to give what it holds beyond a new limit, so it may be asked again.
  if (changes.memory_limit || changes.is_elastic) job.room.note_change();
  if (changes.is_paused) *changes.is_paused ? pause(step, job, by) : resume(step, job);
  if (job.place.is_waiting()) {
    step.device().lane_of(job).waiting.update(order_key(step.device(), job));
  }
}

// An older job reads nothing but the limit (messages.h).
void tell(Step& step, const Job& job, wire::Changes changes, std::uint32_t by) {
  changes.memory_limit = job.settings.memory_limit;
  step.send(job.id, wire::Changed{.of = job.who.of, .changes = changes, .by = by});
}

// The lines of all lanes become one, or go apart. Lanes come to have one virtual time, or go on
// from it with one each. What is known of jobs side by side does not outlast either.
void change_lines(Step& step) {
  open_lanes(step.table(), step.now());
  step.device().side_by_side = {};
  share_clock(step);
}

}  // namespace

std::string cap_wish(const Users& users,
                     std::uint32_t uid,
                     wire::Priority& priority,
                     double& weight) {
  const UserOptions& user = users.of(uid);
  std::vector<std::string> texts;
  if (const auto most = user.max_priority.value_or(priority); priority < most) {
    texts.push_back(fmt::format("priority {}, not {} (max_priority)", wire::name_of(most),
                                wire::name_of(priority)));
    priority = most;
  }
  if (const double most = user.max_weight.value_or(weight); weight > most) {
    texts.push_back(fmt::format("weight {:g}, not {:g} (max_weight)", most, weight));
    weight = most;
  }
  if (texts.empty()) return {};
  return fmt::format("jobs of {} may have at most {}", users.label(uid), fmt::join(texts, " and "));
}

// All that can be wrong is looked at before anything is changed, for each job of the gang.
Status change_job(Step& step, JobId id, const wire::Changes& changes, const Requester& by) {
  Job* const job = step.table().find(id);
  if (job == nullptr) {
    return refuse(fmt::format("there is no job {}. See: gpushare status", id.value));
  }
  GS_RETURN_IF_ERROR(check_right(*job, by));
  if (changes.is_empty()) return refuse(fmt::format("nothing to change of job {}", label(*job)));
  GS_RETURN_IF_ERROR(check_ranges(changes));
  GS_RETURN_IF_ERROR(check_caps(step.table().options.users, *job, changes, by));
  JobSet all = gang_of(step.device(), *job);
  if (all.empty()) all = {id};
  for (const JobId each : all) {
    const Job& member = std::as_const(step).table().at(each);
    GS_RETURN_IF_ERROR(check_resume(member, changes, by));
    GS_RETURN_IF_ERROR(check_limit(member, new_hard_limit(member, changes)));
  }
  step.decide(id, "set", text_of(*job, changes, by.uid));
  for (const JobId each : all) {
    Job& member = step.table().at(each);
    apply(step, member, changes, by.uid);
    member.settings.changes.add(changes);
    tell(step, member, changes, by.uid);
  }
  return {};
}

// Tells the job again what a person changed while it was away, since it has registered with its own
// wishes.
void apply_changes(Step& step, Job& job) {
  if (job.settings.changes.is_empty()) return;
  job.settings.changes.apply_to(job.settings);
  tell(step, job, job.settings.changes, job.settings.paused_by.value_or(0));
}

// Every key in every line is made anew. What jobs and users have had is kept by all policies alike,
// so the new one begins with the whole past.
Status change_policy(Step& step, const std::string& name) {
  Device& device = step.device();
  auto policy = make_policy(name);
  if (!policy.has_value()) return policy.error();
  step.decide(JobId{0}, "policy",
              fmt::format("{} -> {}", device.policy->name(), (*policy)->name()));
  const bool had_one_line = device.has_one_line();
  device.policy = std::move(*policy);
  if (device.has_one_line() != had_one_line) change_lines(step);
  // The new policy decides anew which deadlines there is time for, if it meets any.
  for (const JobId job : std::vector(step.table().jobs.kept().hurried.begin(),
                                     step.table().jobs.kept().hurried.end()))
    step.table().at(job).place.sheds_deadline = false;
  for (Lane& lane : device.lanes) {
    for (const JobId job : lane.waiting.order(lane.waiting.size()))
      lane.waiting.update(order_key(device, step.table().at(job)));
  }
  step.table().options.policy = name;
  return {};
}

}  // namespace gpushare::sched
