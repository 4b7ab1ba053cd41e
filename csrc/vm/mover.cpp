// The mover's thread starts with the first copy, so a process that never moves memory has none. It
// carries out the copies one by one in the order of their tickets. So one number, `done_`, says
// which are finished. A result stays in the map until wait() takes it. One lock covers the queue
// and the results, and is not held while the thread copies.
//
// Where the system starts no thread, submit() makes the copy itself, under the lock, and the ticket
// is done when it returns. At exit the thread may be inside a copy, and in a forked child there is
// no thread: in both cases nothing is joined and nothing destroyed.
#include "csrc/vm/mover.h"

#include <unistd.h>

#include <deque>
#include <thread>
#include <unordered_map>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/base/mutex.h"
#include "csrc/base/process/process_exit.h"
#include "csrc/base/process/start_thread.h"

namespace gpushare::vm {
// Copies are carried out one after the other, in the order in which they were submitted. A ticket
// is the number of a copy, and it is done once done_ has reached that number.
class Mover::Impl {
 public:
  // Returns at once, except where there is no thread.
  Ticket submit(std::function<Status()> copy) GS_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const std::uint64_t number = ++submitted_;
    if (!thread_.joinable()) {
      // The watch begins here rather than in the constructor. The handler that destroys a static
      // mover is registered after its construction, and what is registered last runs first. So at
      // exit the flag is set before ~Mover() asks for it.
      watch_process_exit();
      Result<std::thread> thread = start_thread("the mover", [this] { run(); });
      if (thread.has_value()) {
        thread_ = std::move(*thread);
      } else if (!std::exchange(is_lack_said_, true)) {
        log::warn("{}: copies are done by their caller", thread.error().message());
      }
    }
    if (!thread_.joinable()) {
      results_[number] = copy();
      done_ = number;
      return {number};
    }
    queue_.push_back(std::move(copy));
    work_.notify_one();
    return {number};
  }

  // Each ticket can be waited for once.
  Status wait(Ticket ticket) GS_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    while (done_ < ticket.value)
      finished_.wait(mu_);
    const auto found = results_.find(ticket.value);
    GS_CHECK(found != results_.end(), "ticket {} was waited for already", ticket.value);
    Status result = std::move(found->second);
    results_.erase(found);
    return result;
  }

  // Carries out what is queued, then ends the thread.
  void stop() GS_EXCLUDES(mu_) {
    {
      MutexLock lock(mu_);
      is_stopping_ = true;
      work_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

  // In a forked child the thread does not exist, and a lock it held stays held.
  [[nodiscard]] bool is_of_this_process() const { return owner_ == ::getpid(); }

 private:
  void run() GS_EXCLUDES(mu_) {
    mu_.lock();
    while (true) {
      while (queue_.empty() && !is_stopping_)
        work_.wait(mu_);
      if (queue_.empty()) break;
      const std::function<Status()> copy = std::move(queue_.front());
      queue_.pop_front();
      mu_.unlock();
      // Without the lock, so that others can submit and wait meanwhile.
      Status result = copy();
      mu_.lock();
      results_[++done_] = std::move(result);
      finished_.notify_all();
    }
    mu_.unlock();
  }

  const pid_t owner_ = ::getpid();
  Mutex mu_;
  CondVar work_, finished_;
  std::deque<std::function<Status()>> queue_ GS_GUARDED_BY(mu_);
  std::unordered_map<std::uint64_t, Status> results_ GS_GUARDED_BY(mu_);
  // Invariant: done_ <= submitted_; submitted_ - done_ copies are queued or running.
  std::uint64_t submitted_ GS_GUARDED_BY(mu_) = 0, done_ GS_GUARDED_BY(mu_) = 0;
  bool is_stopping_ GS_GUARDED_BY(mu_) = false;
  bool is_lack_said_ GS_GUARDED_BY(mu_) = false;  // that no thread could be started
  // Started under mu_ by submit(); joined by stop().
  std::thread thread_;
};

Mover::Mover() : impl_(std::make_unique<Impl>()) {}

Mover::~Mover() {
  if (impl_->is_of_this_process() && !process_is_exiting()) {
    impl_->stop();
    return;
  }
  // Left as it is, on purpose: at exit the thread may be inside a copy and must find its queue
  // until the process is gone; in a child there is nothing that could be joined.
  static_cast<void>(impl_.release());
}

Ticket Mover::submit(std::function<Status()> copy) { return impl_->submit(std::move(copy)); }

Status Mover::wait(Ticket ticket) { return impl_->wait(ticket); }

void Mover::after_fork_in_child() {
  // The thread stayed in the parent, and may have held the lock: nothing of it can be used or
  // destroyed here.
  static_cast<void>(impl_.release());
  impl_ = std::make_unique<Impl>();
}

}  // namespace gpushare::vm
