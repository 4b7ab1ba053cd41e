// The life of the coordinator's process: how it begins, what it tells in a report, how it ends.
//
// It begins in this order. It claims its devices, so that of two coordinators at least one sees the
// other. It reads which jobs the coordinator before had, and waits for those that still live: no
// lease is granted before they have said what they hold. Then the state machines, the profiles and
// the state file are made. The socket is opened last, when all that a job may need is there.
//
// It ends by a signal, a Stop, or when no job was there for `linger`. The state file stays if jobs
// still live, for the next coordinator.
//
// What may go wrong: another coordinator has a device (server_devices.cpp). A damaged state file is
// ignored. A state file that is not ours ends the start.
#include "csrc/daemon/server/server.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/files/instance_lock.h"
#include "csrc/daemon/files/state_file.h"
#include "csrc/daemon/files/text_file.h"
#include "csrc/daemon/machine/neighbours.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/daemon/server/status_report.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/policies/policy.h"

namespace gpushare::daemon {
namespace {

// A coordinator that was just started waits at least this long for the job that started it.
constexpr Nanos kFirstLinger = seconds(10);
// How often a coordinator without jobs looks whether somebody is still promised a place.
constexpr Nanos kLookAtPromises = seconds(1);
// How old the list of other processes in a report may be. Looking for them takes milliseconds.
constexpr Nanos kSurroundingsAge = millis(250);

// A number for this coordinator that differs from the one before, without a wall clock: time since
// boot, mixed with the pid. Below 2^53, so that every reader of JSON keeps it.
std::uint64_t fresh_epoch() {
  const auto now = static_cast<std::uint64_t>(monotonic_now().value());
  const auto pid = static_cast<std::uint64_t>(::getpid());
  return ((now ^ (pid << 30)) & ((1ULL << 53) - 1)) | 1;
}

// The policy that somebody has set by hand at the coordinator before, if this version still has it.
std::string known_policy(const std::string& name) {
  const std::vector<std::string> names = sched::policy_names();
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return name;
  log::warn("no policy is called '{}' any more", name);
  return {};
}

}  // namespace

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::create(const DaemonOptions& options,
                                               UniqueFd& lock,
                                               ipc::EventLoop& loop) {
  auto impl = std::make_unique<Impl>(options, lock, loop);
  if (Status status = impl->begin(); !status.ok()) return fail(status);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::shut_down(const char* reason) { impl_->shut_down(reason); }
void Server::restore_socket() { impl_->restore_socket(); }

Server::Impl::Impl(const DaemonOptions& options, UniqueFd& lock, ipc::EventLoop& loop)
    : options_(options),
      loop_(loop),
      started_(monotonic_now()),
      descriptors_(share_descriptors()),
      listener_(options_,
                lock,
                loop,
                {.on_connection = [this](UniqueFd socket) { admit(std::move(socket)); },
                 .on_restored = [this] { on_restored(); }}),
      visitors_(descriptors_.most_visitors),
      suspension_watch_(jobs_,
                        loop,
                        [this](JobId job, bool is_suspended) {
                          conductor_of(job).set_suspended(job, is_suspended);
                        }),
      expected_(loop, [this](const KnownJob& job) { on_expected_gone(job); }),
      profile_store_(options_.socket,
                     loop,
                     // All machines have the same (share_profiles()).
                     [this]() -> const sched::Profiles& {
                       return machines_.front().conductor->coordinator().profiles();
                     }),
      timers_{.gangs = loop.make_timer([this] { settle_gangs(); }),
              .visitors = loop.make_timer([this] { look_after_visitors(); }),
              .linger = loop.make_timer([this] { end_if_still_unused(); })} {
  for (const DeviceOptions& device : options_.devices)
    machines_.push_back(
        {.name = device.name, .capacity = device.capacity, .reserve = device.reserve});
}

// The start, in the order that the top of this file gives.
Status Server::Impl::begin() {
  GS_RETURN_IF_ERROR(claim());
  std::vector<std::int32_t> expected;
  std::vector<std::string> left_over;  // accounts of jobs that have ended since
  auto state = read_state_file(state_path(options_.socket));
  if (!state && state.error().code() != StatusCode::kProtocol) return state.error();
  if (!state) log::warn("{}: ignored", state.error().message());
  epoch_ = fresh_epoch();
  if (state && *state) {
    epoch_ = (*state)->epoch + 1;
    policy_ = known_policy((*state)->policy);
    if (!policy_.empty() && policy_ != options_.coordinator.policy) {
      log::info("policy {} was set by hand, in place of {} of the settings", policy_,
                options_.coordinator.policy);
    }
    for (const KnownJob& job : (*state)->jobs) {
      // A process that cannot be watched has ended.
      if (expected_.add(job).ok()) {
        expected.push_back(job.pid);
      } else {
        left_over.push_back(job.account);
      }
    }
    // It was killed, or it was stopped while jobs lived: the file is there in both cases.
    log::warn("goes on after an earlier coordinator: {} of its jobs live", expected.size());
  }
  GS_RETURN_IF_ERROR(begin_machines(expected));
  begin_gangs();
  const sched::Profiles profiles = profile_store_.load();
  for (const DeviceMachine& machine : machines_)
    machine.conductor->set_profiles(sched::Profiles(profiles));
  begin_accounts();
  for (const std::string& account : left_over)
    keep_left_over(account);
  write_state();
  GS_RETURN_IF_ERROR(listener_.open());
  if (options_.linger) timers_.linger.set_at(started_ + std::max(*options_.linger, kFirstLinger));
  for (const DeviceMachine& device : machines_) {
    log::info("serves {}: device {}, {} for jobs, {} kept from them, policy {}, epoch {}",
              options_.socket, device.name, to_string(device.capacity - device.reserve),
              to_string(device.reserve), policy_.empty() ? options_.coordinator.policy : policy_,
              epoch_);
  }
  return {};
}

// Writes which processes are jobs, those that are still expected, and accounts that are not written
// yet. Called after each change of them.
void Server::Impl::write_state() {
  CoordinatorState state{.epoch = epoch_, .jobs = {}, .policy = policy_};
  for (const auto& [id, entry] : jobs_.entries()) {
    state.jobs.push_back({entry.pid, entry.start_ticks, entry.kept_account, entry.paused_by});
  }
  for (const auto& more : {expected_.jobs(), accounts_on_their_way()})
    state.jobs.insert(state.jobs.end(), more.begin(), more.end());
  // Without it a crash would cost the next daemon its knowledge, but nobody is served worse now.
  const Status status = write_state_file(state_path(options_.socket), state);
  if (!status.ok()) log::error("{}", status.message());
}

// The next coordinator would know nothing of the places that are promised, and send others there
// too.
void Server::Impl::end_if_still_unused() {
  if (!jobs_.empty()) return;
  const Nanos now = monotonic_now();
  if (promised_.num(now) == 0) return shut_down("no job for long enough");
  timers_.linger.set_at(now + kLookAtPromises);
}

// The time begins anew with each last job. A Hello cancels it.
void Server::Impl::end_if_unused() {
  if (jobs_.empty() && options_.linger) timers_.linger.set_at(monotonic_now() + *options_.linger);
}

// Ends once, whatever the reasons. The profiles are saved and the socket is removed before the
// connections close.
void Server::Impl::shut_down(const char* reason) {
  if (std::exchange(is_ended_, true)) return;
  log::info("ends: {}", reason);
  profile_store_.write();
  listener_.close();
  for (auto& [id, entry] : jobs_.entries()) {
    if (entry.is_welcomed) keep_account(entry, false);
    entry.session = nullptr;
  }
  sessions_.clear();
  if (jobs_.empty() && expected_.empty()) {
    const Status status = remove_state_file(state_path(options_.socket));
    if (!status.ok()) log::warn("{}", status.message());
  }
  loop_.stop();
}

// The socket is back under its name. Its folder may be a new one, so the log and the files beside
// the socket are made again as well.
void Server::Impl::on_restored() {
  if (!options_.log_file.empty()) {
    const Status log = make_own_file(options_.log_file);
    if (log.ok()) log::configure(options_.log_level, "gpushared", options_.log_file);
    if (!log.ok()) log::error("{}", log.message());
  }
  log::warn("{} had gone: it is made again; {} jobs are here", options_.socket, jobs_.size());
  write_state();
  profile_store_.forget_written();
  profile_store_.write();
}

// The coordinator is told which processes were found, because a refusal names those that hold
// memory.
void Server::Impl::look_around(Nanos most_age) {
  const Nanos now = monotonic_now();
  if (!surroundings_.is_older_than(most_age, now)) return;
  surroundings_.look(jobs_.pids(), now);
  std::vector<sched::UnmanagedProcess> processes;
  processes.reserve(surroundings_.neighbours().found.size());
  for (const Neighbour& neighbour : surroundings_.neighbours().found) {
    processes.push_back({neighbour.pid, neighbour.resident});
  }
  for (const DeviceMachine& machine : machines_)
    machine.conductor->set_unmanaged(processes);
}

// The text behind `gpushare status`. Only jobs that wait have an explanation there.
std::string Server::Impl::report(std::optional<sched::Why> why) {
  const Nanos now = monotonic_now();
  StatusFacts facts;
  facts.snapshot = snapshot(now);
  facts.now = now;
  facts.started = started_;
  facts.pid = ::getpid();
  facts.socket = options_.socket;
  facts.decisions = decisions();
  look_around(kSurroundingsAge);
  facts.neighbours = surroundings_.neighbours();
  facts.warnings = surroundings_.warnings();
  if (arbiter_ && !arbiter_->is_here())
    facts.warnings.push_back(arbiter_->trouble() + ": gangs wait, and single jobs go on");
  add_page_facts(jobs_, facts);
  for (const sched::DeviceRow& device : facts.snapshot.devices) {
    for (const sched::JobRow& row : device.jobs) {
      const JobId id = row.who.of.job;
      const JobEntry* entry = jobs_.find(id);
      const bool is_waiting = row.waits_for_room || row.settings.paused_by.has_value() ||
                              row.state == "suspended" || (entry != nullptr && entry->is_waiting());
      if (is_waiting) facts.explained[id] = conductor_of(id).coordinator().explain(id, now);
    }
  }
  facts.why = std::move(why);
  return bounded_status_text(std::move(facts));
}

}  // namespace gpushare::daemon
