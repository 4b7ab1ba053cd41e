// The inside of Server. What has a state of its own is an object of its own: the listener, the
// sessions' limits (Visitors), the jobs of the coordinator before, the profiles' file, the looks at
// suspended processes and at the surroundings. What is left here joins them.
//
// Its parts are server.cpp (life), server_devices.cpp (devices), server_placement.cpp (which of
// them a job gets), server_gangs.cpp (gangs on several of them), server_sessions.cpp (connections),
// server_messages.cpp (their messages), server_jobs.cpp (processes) and server_accounts.cpp (what
// is kept of them).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/arbiter/arbiter_link.h"
#include "csrc/daemon/config/options.h"
#include "csrc/daemon/files/account_writer.h"
#include "csrc/daemon/files/profile_store.h"
#include "csrc/daemon/jobs/conductor.h"
#include "csrc/daemon/jobs/job_table.h"
#include "csrc/daemon/jobs/session.h"
#include "csrc/daemon/jobs/suspension_watch.h"
#include "csrc/daemon/machine/descriptor_shares.h"
#include "csrc/daemon/server/expected_jobs.h"
#include "csrc/daemon/server/listener.h"
#include "csrc/daemon/server/promised_places.h"
#include "csrc/daemon/server/server.h"
#include "csrc/daemon/server/surroundings.h"
#include "csrc/daemon/server/visitors.h"
#include "csrc/host/device_placement.h"
#include "csrc/host/gang_rows.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/sched/coordinator.h"
#include "csrc/wire/messages.h"

namespace gpushare::daemon {

// One device of the coordinator.
struct DeviceMachine {
  std::string name;
  Bytes capacity;  // with what is kept from jobs
  Bytes reserve;   // so much of it
  UniqueFd claim = {};
  std::unique_ptr<Conductor> conductor = nullptr;
};

class Server::Impl {
 public:
  Impl(const DaemonOptions& options, UniqueFd& lock, ipc::EventLoop& loop);
  Status begin();
  void shut_down(const char* reason);
  void restore_socket() { listener_.restore(); }

 private:
  // server.cpp
  void on_restored();
  void write_state();
  void end_if_unused();
  void end_if_still_unused();
  // With why a job runs or waits, if that was asked for.
  std::string report(std::optional<sched::Why> why = std::nullopt);
  // Looks around if what was found last is older than this.
  void look_around(Nanos most_age);

  // server_devices.cpp
  Status claim();
  Status claim_one(DeviceMachine& machine) const;
  Status begin_machines(const std::vector<std::int32_t>& expected);
  void on_answer();
  void share_host_tier();
  Conductor& conductor_of(JobId id);
  void expect_no_more(std::int32_t pid, const Conductor* but);
  void share_profiles(const Conductor& of);
  [[nodiscard]] sched::Snapshot snapshot(Nanos now) const;
  [[nodiscard]] std::vector<sched::Decision> decisions() const;

  // server_placement.cpp
  [[nodiscard]] bool is_meant(const std::string& wish, const DeviceMachine& machine) const;
  DeviceMachine* place(const std::string& wish, Bytes resident);
  DeviceMachine* best_of(const std::vector<DeviceMachine*>& machines,
                         const std::vector<std::string>& used,
                         const host::JobLoad& job);
  void handle_place(Session& session, const wire::Place& wish);

  // server_gangs.cpp
  void begin_gangs();
  [[nodiscard]] Status check_gang(const JobEntry& entry, const wire::Register& wish) const;
  void note_hello_of_rank(JobEntry& entry, const wire::Hello& hello);
  void join_gang(JobEntry& entry, const wire::Register& wish);
  void leave_gang(JobEntry& entry);
  [[nodiscard]] std::vector<JobId> on_each_device(JobId job) const;
  [[nodiscard]] bool are_there_gangs();
  [[nodiscard]] bool has_rows() const { return gang_rows_.has_value() || arbiter_.has_value(); }
  [[nodiscard]] host::RankReport report_of(const JobEntry& entry) const;
  void report_rank(const JobEntry& entry, Nanos now);
  void report_ranks(Nanos now);
  void settle_gangs_soon();
  void settle_gangs();
  void carry_out(const std::vector<host::RankOrder>& orders);
  void note_arbiter();

  // server_sessions.cpp
  void admit(UniqueFd socket);
  bool watch(Session& session);
  void look_after_visitors();
  void dismiss(int socket, const std::string& reason);
  [[nodiscard]] bool is_allowed(std::uint32_t uid) const;
  void on_readable(int socket);
  void read(Session& session, int most);
  void refuse(Session& session, const std::string& reason);
  void close(Session& session);
  void forget_session(int socket);
  void close_soon(int socket);

  // server_messages.cpp
  void handle(Session& session, wire::JobMessage message);
  bool handle_question(Session& session, const wire::JobMessage& message);
  void handle_of_job(Session& session, wire::JobMessage message);
  void observe_before_need(JobEntry& entry);
  static void correct_pause(const JobEntry& entry, wire::Register& wish);
  void note_pauses();
  void reply(Session& session, const wire::CoordinatorMessage& message);
  void handle_status(Session& session, const wire::StatusRequest& request);
  void handle_stop(Session& session, bool force);
  void handle_set(Session& session, const wire::Set& set);
  void handle_policy(Session& session, const std::string& policy);
  static sched::Requester requester_of(const Session& session);

  // server_jobs.cpp
  void on_hello(Session& session, wire::Hello hello);
  JobEntry* find_process(std::int32_t pid);
  DeviceMachine* machine_for(const wire::Hello& hello, const JobEntry* entry);
  [[nodiscard]] std::string another_device_text(const std::string& device) const;
  Result<JobEntry*> add_process(std::int32_t pid, std::uint32_t uid, UniqueFd pidfd);
  [[nodiscard]] Status check_number(std::uint32_t uid) const;
  static Result<UniqueFd> open_peer(const Session& session);
  void on_session_closed(JobId id);
  void on_gone(JobId id);
  void on_expected_gone(const KnownJob& job);

  // server_accounts.cpp
  void begin_accounts();
  void keep_account(JobEntry& entry, bool is_gone);
  void name_process(Account& account, const JobEntry& entry) const;
  void keep_left_over(const std::string& kept_account);
  [[nodiscard]] std::string account_if_lost(const JobEntry& entry,
                                            const wire::Register& wish) const;
  [[nodiscard]] std::vector<KnownJob> accounts_on_their_way() const;

  // Each is set anew when it has gone off.
  struct Timers {
    ipc::EventLoop::Timer gangs;     // rows are settled again
    ipc::EventLoop::Timer visitors;  // those who say nothing are sent away
    ipc::EventLoop::Timer linger;    // the coordinator ends if nobody came
  };

  const DaemonOptions options_;
  ipc::EventLoop& loop_;
  const Nanos started_;
  const DescriptorShares descriptors_;
  std::uint64_t epoch_ = 0;
  std::string policy_;  // in place of that of options_, as somebody has said; else empty
  bool is_ended_ = false;
  Listener listener_;
  std::map<int, std::unique_ptr<Session>> sessions_;  // by socket
  Visitors visitors_;                                 // the sessions of no job
  std::vector<int> unheard_;                          // visitors who are to be read later
  JobTable jobs_;                                     // after sessions_: entries point at them
  SuspensionWatch suspension_watch_;                  // after jobs_, which it uses
  ExpectedJobs expected_;
  ProfileStore profile_store_;
  std::optional<AccountWriter> accounts_;  // nothing: none are kept
  std::vector<DeviceMachine> machines_;    // at least one; after jobs_, which they use
  HostBytes host_used_;                    // of the host tier, by jobs of all machines
  PromisedPlaces promised_;
  // The arbiter gives rows to gangs if this coordinator has one. Otherwise gang_rows_ does if there
  // are several devices. With one device and no arbiter both are empty.
  std::optional<host::GangRows> gang_rows_;
  std::optional<ArbiterLink> arbiter_;
  bool are_gangs_due_ = false;  // settle_gangs() comes in a later turn of the loop
  Surroundings surroundings_;
  Timers timers_;
};

}  // namespace gpushare::daemon
