// Binds this process's threads to its share of the cores while it has a lease, and lets them go
// after.
//
// At each change the threads are unbound first, so that all of them have the process's own CPUs
// again. Then the number of threads of an operation is lowered, if its user allowed that. They are
// bound only if that number fits the share's CPUs.
//
// What may go wrong: the kernel refuses the calling thread. Then the job keeps to no cores of its
// own, and the log says so. Other threads that cannot be bound are left as they are.
#include "csrc/client/cpu/cpu_share.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "csrc/base/log.h"
#include "csrc/base/status.h"

namespace gpushare::client {
namespace {

// Gives the CPUs `to` to those threads of this process that may use exactly `from`. A thread that
// ended meanwhile is passed over. errors: kIo: the calling thread may not be bound.
Status rebind(const cpu_set_t& from, const cpu_set_t& to) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/task"), &::closedir);
  if (folder == nullptr) return errno_status("list this process's threads");
  while (const dirent* const entry = ::readdir(folder.get())) {
    const auto thread = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    cpu_set_t now;
    if (thread == 0 || ::sched_getaffinity(thread, sizeof(now), &now) != 0) continue;
    if (!CPU_EQUAL(&now, &from) || ::sched_setaffinity(thread, sizeof(to), &to) == 0) continue;
    if (thread == ::gettid()) return errno_status("bind a thread to CPUs");
  }
  return {};
}

}  // namespace

void CpuShare::settle(wire::CoreShare share, bool may_lower) {
  if (threads_.num == nullptr) return;
  MutexLock lock(mu_);
  unbind();
  if (share.is_all() || !read_own()) return restore_threads();
  const std::vector<std::size_t> part = part_of(cpus_, share);
  // A process with more threads than CPUs was set up so by its user, or by whoever pinned it, so
  // the number stays.
  const int own_num = own_num_.value_or(threads_.num());
  const bool is_usual = own_num <= static_cast<int>(cpus_.size());
  if (may_lower && is_usual) {
    const std::size_t num_cpus = part.empty() ? cpus_.size() / share.of : part.size();
    lower_threads(std::max(static_cast<int>(num_cpus), 1));
  } else {
    restore_threads();
  }
  if (!part.empty() && threads_.num() <= static_cast<int>(part.size())) bind(part);
}

// Puts the number of threads back, unless the user has set another one meanwhile.
void CpuShare::restore_threads() {
  if (own_num_.has_value() && threads_.num() == lowered_to_) threads_.set_num(*own_num_);
  own_num_.reset();
}

void CpuShare::lower_threads(int most) {
  const int now = threads_.num();
  if (!own_num_.has_value() || now != lowered_to_) own_num_ = now;
  lowered_to_ = std::min(*own_num_, most);
  if (now != lowered_to_) threads_.set_num(lowered_to_);
}

// The CPUs are listed anew only if they have changed, since that reads files for each of them.
bool CpuShare::read_own() {
  cpu_set_t own;
  if (::sched_getaffinity(0, sizeof(own), &own) != 0) return false;
  if (cpus_.empty() || !CPU_EQUAL(&own, &own_)) cpus_ = cpus_of(own);
  own_ = own;
  return true;
}

void CpuShare::bind(const std::vector<std::size_t>& cpus) {
  cpu_set_t part;
  CPU_ZERO(&part);
  for (const std::size_t cpu : cpus)
    CPU_SET(cpu, &part);
  if (const Status status = rebind(own_, part); !status.ok()) {
    log::warn("this job keeps to no cores of its own: {}", status.message());
    return;
  }
  bound_ = part;
}

void CpuShare::unbind() {
  if (!bound_.has_value()) return;
  const Status status = rebind(*bound_, own_);
  if (!status.ok()) log::error("this job's threads stay bound to CPUs: {}", status.message());
  bound_.reset();
}

void CpuShare::release() {
  MutexLock lock(mu_);
  unbind();
}

// The child has only the forking thread. It gets all CPUs back if it was bound.
void CpuShare::after_fork_in_child() {
  cpu_set_t now;
  const bool is_bound = bound_.has_value() && ::sched_getaffinity(0, sizeof(now), &now) == 0 &&
                        CPU_EQUAL(&now, &*bound_);
  if (is_bound) ::sched_setaffinity(0, sizeof(own_), &own_);
  bound_.reset();
  mu_.unlock();
}

std::size_t CpuShare::num_bound() {
  MutexLock lock(mu_);
  return bound_.has_value() ? static_cast<std::size_t>(CPU_COUNT(&*bound_)) : 0;
}

}  // namespace gpushare::client
