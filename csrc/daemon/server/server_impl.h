// The inside of Server; its parts are server.cpp (life), server_sessions.cpp (connections and their
// messages), server_socket.cpp (the listener and its name), server_jobs.cpp (processes) and
// server_profiles.cpp (what is remembered of jobs).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/token_bucket.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/config/options.h"
#include "csrc/daemon/jobs/conductor.h"
#include "csrc/daemon/jobs/job_table.h"
#include "csrc/daemon/jobs/session.h"
#include "csrc/daemon/machine/descriptor_shares.h"
#include "csrc/daemon/machine/neighbours.h"
#include "csrc/daemon/server/server.h"
#include "csrc/daemon/server/visitors.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/sched/coordinator.h"
#include "csrc/wire/messages.h"

namespace gpushare::daemon {

class Server::Impl {
 public:
  Impl(const DaemonOptions& options, UniqueFd& lock, ipc::EventLoop& loop);
  Status begin();
  void shut_down(const char* reason);
  void restore_socket();

 private:
  // A job of the daemon before, which has not said Hello here yet.
  struct ExpectedJob {
    std::uint64_t start_ticks = 0;
    UniqueFd pidfd;
    ipc::EventLoop::Watch watch;
  };

  // server.cpp
  Status begin_coordinator(std::uint64_t epoch, const std::vector<std::int32_t>& expected);
  Status claim();
  Status listen();
  // server_socket.cpp
  Status open_socket();
  [[nodiscard]] bool is_socket_here() const;
  Status take_lock_again();
  void try_to_restore();
  // server.cpp
  void write_state();
  void end_if_unused();
  // With why a job runs or waits, if that was asked for.
  std::string report(std::optional<sched::Why> why = std::nullopt);
  void look_around();

  // server_profiles.cpp
  // Reads what the coordinators before this one have left. Before any job registers.
  void load_profiles();
  // If they have changed; not at once where they were written just now.
  void save_profiles();
  void write_profiles();

  // server_sessions.cpp
  void on_connection();
  void accept_later(Nanos pause);
  void admit(UniqueFd socket);
  bool watch(Session& session);
  void look_after_visitors();
  void dismiss(int socket, const std::string& reason);
  [[nodiscard]] bool is_allowed(std::uint32_t uid) const;
  void on_readable(int socket);
  void read(Session& session, int most);
  void handle(Session& session, wire::JobMessage message);
  void reply(Session& session, const wire::CoordinatorMessage& message);
  void handle_stop(Session& session, bool force);
  void handle_set(Session& session, const wire::Set& set);
  void handle_policy(Session& session, const std::string& policy);
  static sched::Requester requester_of(const Session& session);
  void refuse(Session& session, const std::string& reason);
  void close(Session& session);
  void forget_session(int socket);
  void close_soon(int socket);

  // server_jobs.cpp
  void on_hello(Session& session, wire::Hello hello);
  JobEntry* find_process(std::int32_t pid);
  Result<JobEntry*> add_process(std::int32_t pid, std::uint32_t uid, UniqueFd pidfd);
  [[nodiscard]] Status check_number(std::uint32_t uid) const;
  static Result<UniqueFd> open_peer(const Session& session);
  void on_session_closed(JobId id);
  void on_gone(JobId id);
  // Whether processes of jobs are suspended; again soon, while there are several.
  void look_for_suspended();
  Status expect(std::int32_t pid);
  void on_expected_gone(std::int32_t pid);

  const DaemonOptions options_;
  UniqueFd& lock_;
  ipc::EventLoop& loop_;
  const Nanos started_;
  const DescriptorShares descriptors_;
  std::uint64_t epoch_ = 0;
  std::string policy_;  // in place of that of options_, as somebody has said; else empty
  bool is_ended_ = false;
  UniqueFd claim_;  // of the device
  UniqueFd listener_;
  std::uint64_t socket_inode_ = 0;  // of its name
  Nanos restore_until_{0};
  bool are_descriptors_refused_ = false;              // by the kernel
  std::map<int, std::unique_ptr<Session>> sessions_;  // by socket
  Visitors visitors_;                                 // the sessions of no job
  std::vector<int> unheard_;                          // visitors who are to be read later
  TokenBucket accepts_;
  JobTable jobs_;  // after sessions_: entries point at them
  std::map<std::int32_t, ExpectedJob> expected_;
  std::unique_ptr<Conductor> conductor_;  // after jobs_, which it uses
  // As of the last look around, which costs milliseconds.
  Neighbours neighbours_;
  std::vector<std::string> warnings_;  // of other coordinators of the device
  std::optional<Nanos> looked_around_;
  // Profiles::num_changes() at the last write, and when that was.
  std::uint64_t saved_profiles_ = 0;
  std::optional<Nanos> profiles_saved_at_;
  ipc::EventLoop::Timer profile_timer_;
  ipc::EventLoop::Watch listener_watch_;
  ipc::EventLoop::Timer accept_timer_;  // while nobody is accepted
  ipc::EventLoop::Timer visitor_timer_;
  ipc::EventLoop::Timer linger_timer_;
  ipc::EventLoop::Timer restore_timer_;
  ipc::EventLoop::Timer suspended_timer_;
  bool is_looking_for_suspended_ = false;  // the timer is set
  JobId looked_last_;
};

}  // namespace gpushare::daemon
