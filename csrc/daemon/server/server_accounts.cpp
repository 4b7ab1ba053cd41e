// Makes the account of a job when its process is gone, or when this coordinator ends and leaves the
// job to the next one.
//
// The coordinator's row has what it decided itself: leases, times held and waited. The job's page,
// or what was read from it when the registration ended, has what the job counted over its whole
// life. A process that never had iterations to run leaves no account.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/daemon/files/account.h"
#include "csrc/daemon/files/account_writer.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/sched/coordinator.h"
#include "csrc/sched/job/admission.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::daemon {
namespace {

// A process that ends closes its connection first, and may then take seconds to give its memory
// back. Where the connection was gone for longer than this, the process lived on without a
// coordinator.
constexpr Nanos kLongestEnd = seconds(10);

JobEnd end_of(const JobEntry& entry, Nanos now) {
  if (entry.lost_at && now - *entry.lost_at > kLongestEnd) return JobEnd::kLost;
  return entry.has_unregistered ? JobEnd::kEnded : JobEnd::kDied;
}

// The coordinator's part of an account.
Account account_of(const sched::JobRow& row) {
  Account account;
  account.job = row.who.of.job;
  account.pid = row.who.pid;
  account.uid = row.who.uid;
  account.name = row.who.name;
  account.group = row.who.group;
  account.gang = row.who.of.gang;
  account.ranks = row.who.of.ranks;
  account.command = row.who.command;
  account.device = row.who.of.device;
  account.held = row.served;
  account.waited = row.waited;
  account.switching = row.switching;
  account.leases = row.leases;
  if (const auto sizes = sched::sizes_of(row.usage, row.lane))
    account.peak = sizes->persistent + sizes->ephemeral;
  return account;
}

}  // namespace

// What no job says of itself.
void Server::Impl::name_process(Account& account, const JobEntry& entry) const {
  account.id = host_job_id(entry.pid, entry.start_ticks);
  account.epoch = epoch_;
  account.host = host_name();
  account.policy = policy_.empty() ? options_.coordinator.policy : policy_;
  account.start_unix_ns = entry.began_unix_ns;
}

void Server::Impl::begin_accounts() {
  if (options_.accounts_folder.empty()) return;
  accounts_.emplace(AccountPlace{.folder = options_.accounts_folder,
                                 .device = std::string(name_for_files(options_)),
                                 .host = host_name(),
                                 .budget = options_.accounts_budget,
                                 .socket_mode = options_.socket_mode,
                                 .socket_group = options_.socket_group});
}

// The account of a job that asks for turns now, should this be the last that anybody hears of it:
// it is for the state file. Empty: none is kept, also of a name that the coordinator will not take.
std::string Server::Impl::account_if_lost(const JobEntry& entry, const wire::Register& wish) const {
  if (!accounts_ || std::max(wish.name.size(), wish.group.size()) > wire::kMaxNameBytes) return {};
  Account account;
  account.job = entry.id;
  account.pid = entry.pid;
  account.uid = entry.uid;
  account.name = wish.name;
  account.group = wish.group;
  account.gang = wish.of.gang;
  account.ranks = wish.of.ranks;
  account.command = entry.command;
  account.device = entry.address.device;
  account.iterations = wish.iterations_done;
  account.end = JobEnd::kLost;
  name_process(account, entry);
  return line_of(account);
}

// What account_if_lost() gave, of a job that has ended. It has no end yet.
void Server::Impl::keep_left_over(const std::string& kept_account) {
  if (!accounts_ || kept_account.empty()) return;
  auto account = read_account(kept_account);
  if (!account) {
    log::warn("an account of a job of the coordinator before cannot be read: {}",
              account.error().message());
    return;
  }
  if (account->end_unix_ns == 0) account->end_unix_ns = unix_now_ns();
  accounts_->put_left_over(std::move(*account));
}

// They stand in the state file as jobs whose processes are gone.
std::vector<KnownJob> Server::Impl::accounts_on_their_way() const {
  std::vector<KnownJob> jobs;
  if (!accounts_) return jobs;
  for (auto& [pid, line] : accounts_->waiting())
    jobs.push_back({pid, 0, std::move(line), std::nullopt});
  return jobs;
}

// Called before the coordinator forgets the job. Takes the pidfd where the process is gone: nobody
// else needs it then, and it knows how the process ended.
void Server::Impl::keep_account(JobEntry& entry, bool is_gone) {
  if (!accounts_) return;
  const Nanos now = monotonic_now();
  const auto row = entry.conductor->coordinator().row(entry.id, now);
  if (!row || row->age <= Nanos{0}) {
    // Whatever it did was under the coordinator before.
    if (is_gone) keep_left_over(entry.kept_account);
    return;
  }
  Account account = account_of(*row);
  name_process(account, entry);
  account.end_unix_ns = unix_now_ns();
  account.end = is_gone ? end_of(entry, now) : JobEnd::kCarriedOn;
  const LastPage page = entry.last_page_now();
  account.iterations = page.usage.iterations;
  account.optimizer_steps = page.usage.optimizer_steps;
  account.busy = page.usage.busy;
  account.dropped = page.totals.dropped;
  account.spilled = page.totals.spilled;
  account.restored = page.totals.restored;
  UniqueFd process;
  if (is_gone) {
    entry.pid_watch.reset();
    process = std::move(entry.pidfd);
  }
  accounts_->put(std::move(account), std::move(process));
}

}  // namespace gpushare::daemon
