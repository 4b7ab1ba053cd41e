// Gangs whose ranks are on several devices: a report of each rank goes up to whoever gives
// rows, and the orders go down to the machines of the devices.
//
// If this coordinator has an arbiter (csrc/daemon/arbiter), the arbiter gives the rows of all
// gangs, since a device must have one authority. Without an arbiter a coordinator of several
// devices gives rows itself (csrc/host/gang_rows.h), and a coordinator of one device gives none.
//
// A job is a rank if its program has several, and somebody gives rows. Until all ranks are here it
// is not known whether they are on one device, so none begins an iteration before.
//
// The rows are settled in a turn of the loop after any machine has answered, and at the time that
// they name. Their orders are carried out by csrc/host/row_orders.h: the step at which to stop is
// written to the page of each rank before any machine is told. An arbiter's orders come when it has
// decided.
//
// What may go wrong: processes that are no ranks, as torch knows them, name one gang and are on
// several devices. They have no steps in common, so the second one is refused. The arbiter does not
// answer: ranks run to the step that they were told, and wait.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/host/row_orders.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::daemon {
namespace {

// The ranks' pages, and the machines of their devices.
class JobsInRows final : public host::RowMachines {
 public:
  explicit JobsInRows(JobTable& jobs) : jobs_(jobs) {}

  void set_stop_at(JobId rank, std::uint64_t stop_at) override {
    JobEntry* const entry = jobs_.find(rank);
    if (entry == nullptr || !entry->rank) return;
    entry->rank->stop_at = stop_at;
    if (entry->registration) entry->registration->set_stop_at(stop_at);
  }
  void set_row(JobId rank, std::optional<sched::GangRow> row) override {
    JobEntry* const entry = jobs_.find(rank);
    if (entry == nullptr || !entry->rank) return;
    entry->rank->row_until = row ? std::optional(row->until) : std::nullopt;
    entry->conductor->set_row(rank, std::move(row));
  }

 private:
  JobTable& jobs_;
};

}  // namespace

// The machines are those of the devices that were claimed, so ranks name devices by their places
// among these.
void Server::Impl::begin_gangs() {
  std::vector<std::string> names;
  for (const DeviceMachine& machine : machines_)
    names.push_back(machine.name);
  if (!options_.arbiter.empty()) {
    arbiter_.emplace(
        options_, fmt::format("{}", fmt::join(names, ",")), epoch_, loop_,
        ArbiterLink::Callbacks{.on_look = [this] { report_ranks(monotonic_now()); },
                               .on_orders = [this](const auto& orders) { carry_out(orders); },
                               .on_changed = [this] { note_arbiter(); }});
    arbiter_->begin();
  } else if (machines_.size() > 1) {
    host::RowOptions options = row_options(options_);
    options.devices = std::move(names);
    gang_rows_.emplace(std::move(options));
  }
}

// pre: has_rows().
bool Server::Impl::are_there_gangs() {
  return arbiter_ ? !arbiter_->side().empty() : !gang_rows_->empty();
}

void Server::Impl::settle_gangs_soon() {
  if (!std::exchange(are_gangs_due_, true)) loop_.post([this] { settle_gangs(); });
}

// Whether the job may be of the gang that it names.
Status Server::Impl::check_gang(const JobEntry& entry, const wire::Register& wish) const {
  if (wish.of.gang.empty()) return {};
  if (!wish.arbiter.empty() && wish.arbiter != options_.arbiter) {
    return {
        StatusCode::kFailedPrecondition,
        fmt::format("this rank's program is on several coordinators that have the arbiter {} in "
                    "common, and the one at {} has {}: end it, or start it with "
                    "GPUSHARE_ARBITER={}",
                    wish.arbiter, options_.socket,
                    options_.arbiter.empty() ? "none" : options_.arbiter, wish.arbiter)};
  }
  const bool is_rank = wish.of.ranks > 1 && wish.stop_at.has_value();
  for (const auto& [id, other] : jobs_.entries()) {
    const bool is_elsewhere = other.registration && other.conductor != entry.conductor;
    if (!is_elsewhere || other.uid != entry.uid || other.address.gang != wish.of.gang) continue;
    if (is_rank && other.rank) continue;
    return {StatusCode::kFailedPrecondition,
            fmt::format("this process is on {}, and another one of gang {} on {}: only ranks of "
                        "torch.distributed whose gpushare counts their steps may be on several "
                        "devices. Set GPUSHARE_DEVICE={} for all of them",
                        entry.address.device, wish.of.gang, other.address.device,
                        other.address.device)};
  }
  return {};
}

// A rank that comes back may hold a lease. Its steps are known when it has registered.
void Server::Impl::note_hello_of_rank(JobEntry& entry, const wire::Hello& hello) {
  const bool is_rank = has_rows() && !hello.of.gang.empty() && hello.of.ranks > 1;
  if (!is_rank) return leave_gang(entry);
  if (!entry.rank) entry.rank.emplace();
  report_rank(entry, monotonic_now());
}

// Is called before the job's machine hears the Register, since the job must not be granted a lease
// in that step. A job that holds a lease goes on until the step that it was told last. A job that
// has only lost its connection keeps its row.
void Server::Impl::join_gang(JobEntry& entry, const wire::Register& wish) {
  if (!has_rows()) return;
  const bool is_rank = !wish.of.gang.empty() && wish.of.ranks > 1 && wish.stop_at.has_value();
  if (!is_rank) {
    leave_gang(entry);
    return entry.conductor->set_row(entry.id, std::nullopt);
  }
  if (!entry.rank) entry.rank.emplace();
  RankInRows& rank = *entry.rank;
  rank.stop_at = std::max(rank.stop_at, std::min(*wish.stop_at, host::kMostSteps));
  if (!std::exchange(rank.has_row, true)) {
    const std::uint64_t until = entry.held_term > Term{0} ? rank.stop_at : 0;
    rank.row_until = until;
    const std::string trouble = arbiter_ ? arbiter_->trouble() : "";
    entry.conductor->set_row(
        entry.id, sched::GangRow{until, fmt::format("waits with its gang {}{}", wish.of.gang,
                                                    trouble.empty() ? "" : ": " + trouble)});
  }
  report_rank(entry, monotonic_now());
}

void Server::Impl::leave_gang(JobEntry& entry) {
  if (!std::exchange(entry.rank, std::nullopt)) return;
  if (arbiter_) arbiter_->side().forget(entry.id);
  if (gang_rows_) gang_rows_->forget(entry.id);
  settle_gangs_soon();
}

// The job, and a rank of its gang on each other device. What is changed of a rank is changed of all
// of its gang, and its device's machine does that for the ranks there.
std::vector<JobId> Server::Impl::on_each_device(JobId job) const {
  std::vector<JobId> found{job};
  const auto entry = jobs_.entries().find(job);
  if (entry == jobs_.entries().end() || !entry->second.rank) return found;
  std::set<const Conductor*> seen{entry->second.conductor};
  for (const auto& [id, other] : jobs_.entries()) {
    const bool is_of_gang = other.rank && other.uid == entry->second.uid &&
                            other.address.gang == entry->second.address.gang;
    if (is_of_gang && seen.insert(other.conductor).second) found.push_back(id);
  }
  return found;
}

// Returns the rank as its page shows it, and as its device's machine has understood that. pre: it
// is a rank.
host::RankReport Server::Impl::report_of(const JobEntry& entry) const {
  const auto machine = std::find_if(machines_.begin(), machines_.end(), [&](const auto& each) {
    return each.conductor.get() == entry.conductor;
  });
  host::RankReport report{.gang = {entry.uid, entry.address.gang},
                          .job = entry.id,
                          .ranks = entry.address.ranks,
                          .device = static_cast<std::size_t>(machine - machines_.begin()),
                          .is_known = entry.registration.has_value(),
                          .stop_at = entry.rank->stop_at,
                          .has_lease = entry.held_term > Term{0},
                          .is_held_back = entry.conductor->coordinator().is_held_back(entry.id)};
  if (!entry.registration) return report;
  const wire::Usage usage = entry.registration->usage();
  report.steps = usage.gang_steps;
  report.wants = entry.is_waiting();
  report.has_lease = entry.registration->belief().lease == Belief::Lease::kOpen;
  report.is_in_gap = usage.is_in_gap;
  report.iteration = usage.phases.training.usual;
  report.switching = usage.stall;
  report.standing = entry.conductor->coordinator().standing(entry.id);
  report.setback = entry.conductor->coordinator().setback(entry.id);
  report.gap = std::max(usage.gap.usual, usage.gap.mean);
  return host::bounded(std::move(report));
}

void Server::Impl::report_rank(const JobEntry& entry, Nanos now) {
  if (arbiter_) arbiter_->side().report(report_of(entry), entry.address.rank);
  if (gang_rows_) gang_rows_->report(report_of(entry), now);
}

// Reports all ranks, and the single jobs of each device.
void Server::Impl::report_ranks(Nanos now) {
  for (const auto& [id, entry] : jobs_.entries())
    if (entry.rank) report_rank(entry, now);
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    const sched::Singles singles = machines_[i].conductor->coordinator().singles(now);
    if (arbiter_) arbiter_->side().note_singles(i, singles);
    if (gang_rows_) gang_rows_->note_singles(i, singles);
  }
}

// With an arbiter nothing is decided here: it is told the news, and its orders come later.
void Server::Impl::settle_gangs() {
  are_gangs_due_ = false;
  const Nanos now = monotonic_now();
  report_ranks(now);
  if (arbiter_) return arbiter_->tell();
  const host::RowOrders orders = gang_rows_->settle(now);
  for (const std::string& said : orders.said)
    log::debug("{}", said);
  carry_out(orders.ranks);
  if (orders.look_at.has_value()) {
    timers_.gangs.set_at(*orders.look_at);
  } else {
    timers_.gangs.cancel();
  }
}

void Server::Impl::carry_out(const std::vector<host::RankOrder>& orders) {
  JobsInRows machines(jobs_);
  host::carry_out(orders, machines);
}

// The arbiter is here again, or is not here any more. A rank keeps the end of its row, and what it
// waits for is said. Ranks on one device that are all here need no arbiter, and go on.
void Server::Impl::note_arbiter() {
  if (arbiter_->is_here()) return;
  for (const auto& [id, entry] : jobs_.entries()) {
    if (!entry.rank || !entry.rank->row_until.has_value()) continue;
    entry.conductor->set_row(
        id, sched::GangRow{*entry.rank->row_until,
                           fmt::format("waits with its gang {}: {}", entry.address.gang,
                                       arbiter_->trouble())});
  }
}

}  // namespace gpushare::daemon
