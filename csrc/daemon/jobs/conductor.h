// Feeds the state machine of one device and carries out what it answers.
//
// The coordinator (csrc/sched) decides and touches nothing; the conductor is its hands: it sends
// its messages, changes the lease words, wakes the jobs, keeps its deadline and looks at the pages.
// The path of a hand-over runs through here: eventfd, one load of the word, on_message, one
// compare-and-swap, one futex wake. Besides the reason of the decision, which the coordinator
// formats, nothing is logged or sent before the wake unless the coordinator asks for it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/token_bucket.h"
#include "csrc/base/units.h"
#include "csrc/daemon/jobs/job_table.h"
#include "csrc/daemon/jobs/lane_files.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/job/ready.h"
#include "csrc/wire/messages.h"

namespace gpushare::daemon {

class Conductor {
 public:
  // `on_broken` is told of a job whose session has just been marked broken; it must not call back
  // into the conductor at once. `jobs` may have jobs of other devices too. `jobs` and `loop` must
  // outlive it.
  Conductor(std::unique_ptr<sched::Coordinator> coordinator,
            std::uint64_t epoch,
            JobTable& jobs,
            ipc::EventLoop& loop,
            std::function<void(JobId)> on_broken);

  void feed(JobId from, const wire::JobMessage& message);
  // A job of the coordinator before has ended without a Hello here.
  void expected_pid_gone(std::int32_t pid);
  // Calls Coordinator::set_suspended() and carries out the answer.
  void set_suspended(JobId job, bool is_suspended);
  // Calls Coordinator::set() and carries out the answer.
  Status set(JobId job, const wire::Changes& changes, const sched::Requester& by);
  // Calls Coordinator::set_row() and carries out the answer.
  void set_row(JobId job, std::optional<sched::GangRow> row);
  // Is called after each answer that was carried out; it must not call back into the conductor at
  // once.
  void on_answer(std::function<void()> call) { on_answer_ = std::move(call); }
  // Calls Coordinator::set_policy() and carries out the answer.
  Status set_policy(const std::string& name);
  // Looks at the job's page and tells the coordinator what has happened on it. Returns whether
  // there was news.
  bool look(JobEntry& entry);
  // Calls Coordinator::set_profiles().
  void set_profiles(sched::Profiles profiles) { coordinator_->set_profiles(std::move(profiles)); }
  // Calls Coordinator::set_host_used_elsewhere().
  void set_host_used_elsewhere(const HostBytes& bytes) {
    coordinator_->set_host_used_elsewhere(bytes);
  }
  // Has the coordinator decide anew in a later turn of the loop.
  void decide_soon() { timer_.set_at(Nanos{0}); }
  // For texts about memory.
  void set_unmanaged(std::vector<sched::UnmanagedProcess> processes) {
    coordinator_->set_unmanaged(std::move(processes));
  }
  // Before the entry of a job leaves the table, or loses its connection or registration.
  void forget_waiting(JobEntry& entry);

  [[nodiscard]] const sched::Coordinator& coordinator() const { return *coordinator_; }
  // The last 64, oldest first.
  [[nodiscard]] const std::deque<sched::Decision>& decisions() const { return decisions_; }

 private:
  void carry_out(sched::Ready ready, Nanos now);
  Status carry_out_if_done(Result<sched::Ready> ready, Nanos now);
  void deliver(const sched::Outbound& outbound);
  void deliver_lane(JobEntry& entry, const wire::CoordinatorMessage& message);
  void deliver_registered(JobEntry& entry, const wire::CoordinatorMessage& message);
  void send(JobEntry& entry, const wire::CoordinatorMessage& message, const std::vector<int>& fds);
  void act(const sched::PageAction& action, Nanos now);
  void act_grant(JobEntry& entry, const sched::PageAction& action, Nanos now);
  void act_ask(JobEntry& entry, const sched::PageAction& action);
  void keep(std::vector<sched::Decision> decisions);
  Status watch_event(JobEntry& entry);
  void on_event(JobId id);
  void hear_again();
  void on_deadline();
  void look_soon(JobId id);
  void note_waiting(bool was_waiting, const JobEntry& entry);
  [[nodiscard]] bool is_mine(const JobEntry& entry) const;
  void publish_waiting();
  void publish_others();
  void publish_transfer_rates();
  void mark_broken(JobEntry& entry, std::string reason);

  std::unique_ptr<sched::Coordinator> coordinator_;
  std::uint64_t epoch_;
  JobTable& jobs_;
  ipc::EventLoop& loop_;
  std::function<void(JobId)> on_broken_;
  std::function<void()> on_answer_;
  ipc::EventLoop::Timer timer_;
  std::map<std::uint32_t, TokenBucket> rings_;  // by user: how often pages are looked at
  std::vector<JobId> unheard_;                  // their events are not watched until hear_again()
  ipc::EventLoop::Timer hear_timer_;
  std::vector<JobId> observe_;  // of the newest Ready
  std::deque<sched::Decision> decisions_;
  // Invariant: how many entries of jobs_ on this device are is_waiting().
  std::uint32_t num_waiting_ = 0;
  bool is_num_waiting_new_ = false;
  LaneFiles lane_files_;
  bool are_others_new_ = false;
};

}  // namespace gpushare::daemon
