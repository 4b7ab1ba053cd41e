#include "csrc/sched/ledger.h"

#include "csrc/base/check.h"

namespace gpushare::sched {

Ledger::Ledger(Bytes capacity) : configured_(capacity) {
  GS_CHECK(capacity > Bytes{0}, "capacity {}", to_string(capacity));
}

Bytes Ledger::room(JobId job) const {
  const auto found = rooms_.find(job);
  return found == rooms_.end() ? Bytes{0} : found->second;
}

void Ledger::attach(JobId job, Bytes resident) {
  GS_CHECK(resident >= Bytes{0}, "job {} with {}", job.value, to_string(resident));
  Bytes& room = rooms_[job];
  total_ += resident - room;
  room = resident;
  GS_EXPENSIVE_CHECK(check_invariants());
}

void Ledger::raise(JobId job, Bytes by) {
  const auto found = rooms_.find(job);
  GS_CHECK(found != rooms_.end(), "job {} has no entry", job.value);
  GS_CHECK(by == Bytes{0} || (by > Bytes{0} && by <= free()), "job {} by {} of {} free", job.value,
           to_string(by), to_string(free()));
  found->second += by;
  total_ += by;
  GS_EXPENSIVE_CHECK(check_invariants());
}

void Ledger::lower(JobId job, Bytes by) {
  const auto found = rooms_.find(job);
  GS_CHECK(found != rooms_.end(), "job {} has no entry", job.value);
  GS_CHECK(by >= Bytes{0} && by <= found->second, "job {} by {} of {}", job.value, to_string(by),
           to_string(found->second));
  found->second -= by;
  total_ -= by;
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

void Ledger::donate(JobId job, Bytes by) {
  const auto found = rooms_.find(job);
  GS_CHECK(found != rooms_.end(), "job {} has no entry", job.value);
  GS_CHECK(by >= Bytes{0} && by <= pools_, "by {} of {}", to_string(by), to_string(pools_));
  pools_ -= by;
  found->second += by;
  total_ += by;
  GS_EXPENSIVE_CHECK(check_invariants());
}

void Ledger::withhold(Bytes bytes) {
  GS_CHECK(bytes >= Bytes{0} && bytes < configured_, "{} of {}", to_string(bytes),
           to_string(configured_));
  withheld_ = bytes;
  GS_EXPENSIVE_CHECK(check_invariants());
}

void Ledger::remove(JobId job) {
  const auto found = rooms_.find(job);
  if (found == rooms_.end()) return;
  total_ -= found->second;
  rooms_.erase(found);
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
  GS_CHECK(sum == total_, "sum {} total {}", to_string(sum), to_string(total_));
}

}  // namespace gpushare::sched
