// The processes the daemon serves: one entry from a job's Hello until its process is gone.
//
// A job's end is its pidfd, not its socket: an entry outlives its connection, and a process that
// comes back gets its old number. Numbers count from 1 and are never used twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/daemon/jobs/registration.h"
#include "csrc/daemon/jobs/session.h"
#include "csrc/ipc/event_loop.h"
#include "csrc/wire/address.h"
#include "csrc/wire/usage.h"

namespace gpushare::daemon {

// What a job's page said of it.
struct LastPage {
  wire::Usage usage;
  Registration::Totals totals;
};

// A rank of a gang that somebody gives rows to (server_gangs.cpp).
struct RankInRows {
  bool has_row = false;                         // its machine was told when it may begin
  std::uint64_t stop_at = 0;                    // where it is to stop; 0: it was told no step
  std::optional<std::uint64_t> row_until = {};  // as its machine was told; nothing: needs no row
};

class Conductor;

struct JobEntry {
  JobId id;
  std::int32_t pid = 0;
  std::uint32_t uid = 0;           // of the last Hello
  std::uint64_t start_ticks = 0;   // see process_info.h
  wire::Address address;           // with `id`
  Conductor* conductor = nullptr;  // of its device, from its first Hello on
  bool is_welcomed = false;        // the coordinator has it in its ledger
  std::string command;             // of the last Hello
  Term held_term;                  // of the last Hello, until a registration has taken it over
  Session* session = nullptr;      // nullptr: lost
  std::optional<RankInRows> rank;  // nothing: it is no rank, or nobody gives rows
  UniqueFd pidfd;
  std::optional<Registration> registration;
  // The result of the last look (suspension_watch.h).
  bool looked_suspended = false;
  bool is_suspended = false;  // at two looks, one after the other
  // When and from where its iterations are counted, for the rate in status.
  Nanos registered_at;
  std::uint64_t iterations_before = 0;
  // For its account: its first Hello here, since 1970; whether it has said that its iterations are
  // over; since when it has no connection.
  std::int64_t began_unix_ns = 0;
  bool has_unregistered = false;
  std::optional<Nanos> lost_at;
  LastPage last_page = {};  // of a registration that has ended
  // For the state file (state_file.h): its account (empty: none), and who has paused it.
  std::string kept_account = {};
  std::optional<std::uint32_t> paused_by = {};
  // After the descriptors they watch: these end first.
  ipc::EventLoop::Watch pid_watch;
  ipc::EventLoop::Watch event_watch;

  [[nodiscard]] bool is_waiting() const {
    return registration && registration->belief().lease == Belief::Lease::kWaiting;
  }
  // What the page says that there is, or the one before it, until the job has written its figures
  // into the new one.
  [[nodiscard]] LastPage last_page_now() const {
    if (!registration) return last_page;
    const LastPage now{registration->usage(), registration->totals()};
    return now.usage.iterations >= last_page.usage.iterations ? now : last_page;
  }
  void end_registration() {
    last_page = last_page_now();
    event_watch.reset();
    registration.reset();
  }
};

class JobTable {
 public:
  JobEntry& add(std::int32_t pid);
  // nullptr if there is none. References stay good until erase().
  JobEntry* find(JobId id);
  JobEntry* find_pid(std::int32_t pid);
  void erase(JobId id);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::set<std::int32_t> pids() const;
  // In the order of numbers.
  std::map<JobId, JobEntry>& entries() { return entries_; }
  [[nodiscard]] const std::map<JobId, JobEntry>& entries() const { return entries_; }

 private:
  std::map<JobId, JobEntry> entries_;
  JobId last_;
};

}  // namespace gpushare::daemon
