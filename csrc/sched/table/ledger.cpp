// Sums are kept beside the entries, by user and in all, so that what is free is one subtraction.
// Every mutator says what it must not do, as a check: room rises only within what is free, and
// falls only by what there is.
#include "csrc/sched/table/ledger.h"

#include "csrc/base/check.h"
#include "csrc/sched/job/lookup.h"

namespace gpushare::sched {

Ledger::Ledger(Bytes capacity) : configured_(capacity) {
  GS_CHECK(capacity > Bytes{0}, "capacity {}", to_string(capacity));
}

Bytes Ledger::room(JobId job) const { return value_or(rooms_, job, Bytes{0}); }

Bytes Ledger::of_user(std::uint32_t uid) const { return value_or(of_users_, uid, Bytes{0}); }

// A job's user is told while the job has no bytes, so that the user's sum never has to move bytes
// from one user to another.
void Ledger::belongs_to(JobId job, std::uint32_t uid) {
  GS_CHECK(rooms_.contains(job) && room(job) == Bytes{0}, "job {} with {}", job.value,
           to_string(room(job)));
  users_[job] = uid;
}

// All three sums change here and nowhere else: the job's, that of all jobs, and the user's.
void Ledger::change(JobId job, Bytes& room, Bytes by) {
  room += by;
  total_ += by;
  const auto user = users_.find(job);
  if (user != users_.end()) of_users_[user->second] += by;
}

// The one mutator without a check against what is free: the bytes are backed already, and to deny
// that would only make the books wrong.
void Ledger::attach(JobId job, Bytes resident) {
  GS_CHECK(resident >= Bytes{0}, "job {} with {}", job.value, to_string(resident));
  Bytes& room = rooms_[job];
  change(job, room, resident - room);
  GS_EXPENSIVE_CHECK(check_invariants());
}

// Room of 0 more is allowed even if more is in use than there is. A Need that was answered by what
// the job had anyway is met that way.
void Ledger::raise(JobId job, Bytes by) {
  const auto found = rooms_.find(job);
  GS_CHECK(found != rooms_.end(), "job {} has no entry", job.value);
  GS_CHECK(by == Bytes{0} || (by > Bytes{0} && by <= free()), "job {} by {} of {} free", job.value,
           to_string(by), to_string(free()));
  change(job, found->second, by);
  GS_EXPENSIVE_CHECK(check_invariants());
}

void Ledger::lower(JobId job, Bytes by) {
  const auto found = rooms_.find(job);
  GS_CHECK(found != rooms_.end(), "job {} has no entry", job.value);
  GS_CHECK(by >= Bytes{0} && by <= found->second, "job {} by {} of {}", job.value, to_string(by),
           to_string(found->second));
  change(job, found->second, Bytes{0} - by);
  GS_EXPENSIVE_CHECK(check_invariants());
}

void Ledger::raise_pools(Bytes by) {
  GS_CHECK(by == Bytes{0} || (by > Bytes{0} && by <= free()), "by {} of {} free", to_string(by),
           to_string(free()));
  pools_ += by;
  GS_EXPENSIVE_CHECK(check_invariants());
}

void Ledger::lower_pools(Bytes by) {
  GS_CHECK(by >= Bytes{0} && by <= pools_, "by {} of {}", to_string(by), to_string(pools_));
  pools_ -= by;
  GS_EXPENSIVE_CHECK(check_invariants());
}

// The bytes stay in use; only who is charged for them changes. So free() is the same before and
// after.
void Ledger::donate(JobId job, Bytes by) {
  const auto found = rooms_.find(job);
  GS_CHECK(found != rooms_.end(), "job {} has no entry", job.value);
  GS_CHECK(by >= Bytes{0} && by <= pools_, "by {} of {}", to_string(by), to_string(pools_));
  pools_ -= by;
  change(job, found->second, by);
  GS_EXPENSIVE_CHECK(check_invariants());
}

// Memory that others than jobs take makes the capacity smaller, and takes no room from any job. If
// more is withheld than was free, free() is negative until jobs have given enough back.
void Ledger::withhold(Bytes bytes) {
  GS_CHECK(bytes >= Bytes{0} && bytes < configured_, "{} of {}", to_string(bytes),
           to_string(configured_));
  withheld_ = bytes;
  GS_EXPENSIVE_CHECK(check_invariants());
}

// The driver has taken the memory of a process that is gone, so nothing has to be asked back.
void Ledger::remove(JobId job) {
  const auto found = rooms_.find(job);
  if (found == rooms_.end()) return;
  change(job, found->second, Bytes{0} - found->second);
  rooms_.erase(found);
  users_.erase(job);
  GS_EXPENSIVE_CHECK(check_invariants());
}

void Ledger::check_invariants() const {
  Bytes sum;
  for (const auto& [job, room] : rooms_) {
    GS_CHECK(room >= Bytes{0}, "job {} has {}", job.value, to_string(room));
    sum += room;
  }
  GS_CHECK(pools_ >= Bytes{0}, "pools of {}", to_string(pools_));
  GS_CHECK(withheld_ >= Bytes{0} && capacity() > Bytes{0}, "withheld {} of {}",
           to_string(withheld_), to_string(configured_));
  std::map<std::uint32_t, Bytes> of_users;
  for (const auto& [job, uid] : users_)
    of_users[uid] += room(job);
  for (const auto& [uid, bytes] : of_users_)
    GS_CHECK(bytes == of_users[uid], "user {}: {} of {}", uid, to_string(bytes),
             to_string(of_users[uid]));
  GS_CHECK(sum == total_, "sum {} total {}", to_string(sum), to_string(total_));
}

}  // namespace gpushare::sched
