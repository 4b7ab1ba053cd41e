// The queue between the event loop and the disk. An account stays in the queue until it is written,
// so the bound of the queue counts the one at work too. The thread alone takes accounts out.
//
// The exit status comes from the kernel by the job's pidfd, which has it from Linux 6.15 on, once
// the parent has reaped the process. A parent does so at once as a rule, so the thread waits a
// moment for it. On an older kernel the status stays unknown.
#include "csrc/daemon/files/account_writer.h"

#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/mutex.h"
#include "csrc/base/process/start_thread.h"
#include "csrc/base/status.h"

namespace gpushare::daemon {
namespace {

constexpr Nanos kTryAgain = seconds(1);
// How long a parent may take to reap a job. The time counts from the end of the job, so that many
// jobs of a parent that reaps none do not add up.
constexpr Nanos kReap = millis(50);
// How many pidfds may wait in the queue. Descriptors are for jobs, and a disk may hang for long.
constexpr std::size_t kMostProcesses = 64;

// struct pidfd_info of linux/pidfd.h, of its first version with an exit code. Debian 12's headers
// do not have it.
struct PidfdInfo {
  std::uint64_t mask = 0;
  std::uint64_t cgroup_id = 0;
  std::uint32_t pid = 0, tgid = 0, ppid = 0;
  std::uint32_t ids[8] = {};  // NOLINT(*-avoid-c-arrays): as the kernel has it
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kExitInfo = 1ULL << 3;                  // PIDFD_INFO_EXIT
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);  // PIDFD_GET_INFO

// Without the flag in the answer the process is not reaped yet, or the kernel does not know it. An
// older kernel refuses the whole question.
std::optional<std::int32_t> ask_wait_status(int process) {
  PidfdInfo info;
  info.mask = kExitInfo;
  if (::ioctl(process, kGetInfo, &info) != 0 || (info.mask & kExitInfo) == 0) return std::nullopt;
  return info.exit_code;
}

std::optional<std::int32_t> wait_status_of(const UniqueFd& process, Nanos until) {
  if (const auto status = ask_wait_status(process.get())) return status;
  const auto left = std::max<std::int64_t>((until - monotonic_now()) / millis(1), 0);
  pollfd reaped{.fd = process.get(), .events = 0, .revents = 0};  // POLLHUP always counts
  static_cast<void>(::poll(&reaped, 1, static_cast<int>(left)));
  return ask_wait_status(process.get());
}

}  // namespace

struct AccountWriter::Shared {
  struct Waiting {
    Account account;
    UniqueFd process;
    Nanos reaped_by;
    bool is_left_over = false;
    // Made once, since waiting() is asked often, and many accounts wait where a disk is full.
    std::string line = line_of(account);
  };

  explicit Shared(AccountPlace place) : journal(std::move(place)) {}

  // Writes it, unless it is there already.
  Status write(const Waiting& waiting) {
    if (waiting.is_left_over) {
      const auto had = journal.had(waiting.account);
      if (!had || *had) return had ? Status() : had.error();
    }
    return journal.append(waiting.line);
  }

  AccountJournal journal;  // the thread's alone
  Mutex mu;
  CondVar changed;  // the queue is new, or empty, or the writer ends
  std::deque<Waiting> queue GS_GUARDED_BY(mu);
  std::uint64_t num_dropped GS_GUARDED_BY(mu) = 0;
  bool is_ended GS_GUARDED_BY(mu) = false;      // what waits is still to be written
  bool is_abandoned GS_GUARDED_BY(mu) = false;  // after an error nothing is tried again
};

// The thread keeps what it shares with this object alive. It may hang in a write to a broken disk,
// and then it is left behind.
AccountWriter::AccountWriter(AccountPlace place)
    : shared_(std::make_shared<Shared>(std::move(place))) {
  auto thread = start_thread("the accounts", [shared = shared_] { work(shared); });
  if (thread.has_value()) {
    thread->detach();
  } else {
    log::warn("{}: no accounts are kept", thread.error().message());
  }
}

// Waits for the queue to become empty, but no longer than kPatience: the end of the coordinator
// must not depend on a disk.
AccountWriter::~AccountWriter() {
  const Nanos deadline = monotonic_now() + kPatience;
  const MutexLock lock(shared_->mu);
  shared_->is_ended = true;
  shared_->changed.notify_all();
  while (!shared_->queue.empty() && monotonic_now() < deadline)
    shared_->changed.wait_for(shared_->mu, deadline - monotonic_now());
  shared_->is_abandoned = true;
  shared_->changed.notify_all();
  if (const std::size_t left = shared_->queue.size(); left > 0)
    log::error("the accounts of {} jobs could not be written in {}", left,
               shared_->journal.folder());
}

void AccountWriter::put(Account account, UniqueFd process) {
  add(std::move(account), std::move(process), false);
}

void AccountWriter::put_left_over(Account account) { add(std::move(account), UniqueFd(), true); }

// For who reads accounts now: these are not in the files yet.
std::vector<std::pair<std::int32_t, std::string>> AccountWriter::waiting() const {
  const MutexLock lock(shared_->mu);
  std::vector<std::pair<std::int32_t, std::string>> lines;
  lines.reserve(shared_->queue.size());
  for (const Shared::Waiting& each : shared_->queue)
    lines.emplace_back(each.account.pid, each.line);
  return lines;
}

// A full queue loses accounts rather than memory without end. That is said once when it begins, and
// with the number when the queue is empty again.
void AccountWriter::add(Account account, UniqueFd process, bool is_left_over) {
  const MutexLock lock(shared_->mu);
  if (shared_->queue.size() >= kMost) {
    if (shared_->num_dropped++ == 0)
      log::error("the accounts of {} jobs wait to be written in {}: those of further jobs are lost",
                 kMost, shared_->journal.folder());
    return;
  }
  if (shared_->queue.size() >= kMostProcesses && process.is_valid()) {
    account.wait_status = ask_wait_status(process.get());  // known unless it is not reaped yet
    process.reset();
  }
  shared_->queue.push_back(
      {std::move(account), std::move(process), monotonic_now() + kReap, is_left_over});
  shared_->changed.notify_all();
}

// Runs on the thread of its own. A reference to the first of the queue stays good while others are
// added behind it.
void AccountWriter::work(const std::shared_ptr<Shared>& shared) {
  Shared& own = *shared;
  std::string said;  // the error that the log has already
  own.mu.lock();
  while (true) {
    while (own.queue.empty() && !own.is_ended)
      own.changed.wait(own.mu);
    if (own.queue.empty()) break;
    Shared::Waiting& next = own.queue.front();
    own.mu.unlock();
    if (next.process.is_valid()) {
      const auto wait_status = wait_status_of(next.process, next.reaped_by);
      next.process.reset();
      const MutexLock lock(own.mu);  // waiting() reads it
      next.account.wait_status = wait_status;
      next.line = line_of(next.account);
    }
    const Status status = own.write(next);
    if (!status.ok() && std::exchange(said, status.message()) != status.message())
      log::warn("{}: the account of job {} is written later", status.message(),
                next.account.job.value);
    if (status.ok()) said.clear();
    own.mu.lock();
    if (!status.ok()) {
      if (!own.is_abandoned) own.changed.wait_for(own.mu, kTryAgain);
      if (own.is_abandoned) break;
      continue;
    }
    own.queue.pop_front();
    if (!own.queue.empty()) continue;
    own.changed.notify_all();
    if (const auto dropped = std::exchange(own.num_dropped, 0); dropped > 0)
      log::error("the accounts of {} jobs are lost", dropped);
    own.mu.unlock();
    if (const Status synced = own.journal.sync(); !synced.ok()) log::warn("{}", synced.message());
    own.mu.lock();
  }
  own.mu.unlock();
}

}  // namespace gpushare::daemon
