// Gangs whose ranks are on several devices: what is seen of each rank goes up to the host's rows
// (csrc/host/gang_rows.h), and their orders go down to the machines of the devices.
//
// A job is a rank if its program has several, and this coordinator has several devices. Until all
// ranks are here it is not known whether they are on one device, so none begins an iteration
// before.
//
// The rows are settled in a turn of the loop after any machine has answered, and at the time that
// they name. Their orders are carried out by csrc/host/row_orders.h: the step at which to stop is
// written to the page of each rank before any machine is told.
//
// What may go wrong: processes that are no ranks, as torch knows them, name one gang and are on
// several devices. They have no steps in common, so the second one is refused.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/daemon/server/server_impl.h"
#include "csrc/host/row_orders.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::daemon {
namespace {

// Claims of the job's. Rows multiply and add them up again and again, so they are bounded by more
// than any program needs.
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 40;
constexpr Nanos kMostTime = seconds(3600);
std::uint64_t bounded(std::uint64_t step) { return std::min(step, kMostSteps); }
Nanos bounded(Nanos time) { return std::min(time, kMostTime); }

// The ranks' pages, and the machines of their devices.
class JobsInRows final : public host::RowMachines {
 public:
  explicit JobsInRows(JobTable& jobs) : jobs_(jobs) {}

  void set_stop_at(JobId rank, std::uint64_t stop_at) override {
    JobEntry* const entry = jobs_.find(rank);
    if (entry == nullptr) return;
    entry->stop_at = stop_at;
    if (entry->registration) entry->registration->set_stop_at(stop_at);
  }
  void set_row(JobId rank, std::optional<sched::GangRow> row) override {
    const JobEntry* const entry = jobs_.find(rank);
    if (entry != nullptr) entry->conductor->set_row(rank, std::move(row));
  }

 private:
  JobTable& jobs_;
};

}  // namespace

// With one device there are no rows, and nothing here is called.
void Server::Impl::begin_gangs() {
  if (machines_.size() < 2) return;
  host::RowOptions options{.least_slice = options_.coordinator.min_quantum,
                           .most_slice = options_.coordinator.max_wait,
                           .switch_loss = options_.coordinator.switch_loss};
  for (const DeviceMachine& machine : machines_)
    options.devices.push_back(machine.name);
  gang_rows_.emplace(std::move(options));
  for (const DeviceMachine& machine : machines_) {
    machine.conductor->on_answer([this] {
      if (!gang_rows_->empty()) settle_gangs_soon();
    });
  }
}

void Server::Impl::settle_gangs_soon() {
  if (!std::exchange(are_gangs_due_, true)) loop_.post([this] { settle_gangs(); });
}

// Whether the job may be of the gang that it names.
Status Server::Impl::check_gang(const JobEntry& entry, const wire::Register& wish) const {
  if (wish.of.gang.empty()) return {};
  const bool is_rank = wish.of.ranks > 1 && wish.stop_at.has_value();
  for (const auto& [id, other] : jobs_.entries()) {
    const bool is_elsewhere = other.registration && other.conductor != entry.conductor;
    if (!is_elsewhere || other.uid != entry.uid || other.address.gang != wish.of.gang) continue;
    if (is_rank && other.is_rank) continue;
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
  const bool is_rank = gang_rows_.has_value() && !hello.of.gang.empty() && hello.of.ranks > 1;
  if (!is_rank) return leave_gang(entry);
  entry.is_rank = true;
  gang_rows_->report(report_of(entry), monotonic_now());
}

// Before its machine hears the Register: the job must not be granted a lease in that step. One that
// holds a lease goes on until the step that it was told last. One that has only lost its connection
// keeps the row that it has.
void Server::Impl::join_gang(JobEntry& entry, const wire::Register& wish) {
  if (!gang_rows_.has_value()) return;
  const bool is_rank = !wish.of.gang.empty() && wish.of.ranks > 1 && wish.stop_at.has_value();
  if (!is_rank) {
    leave_gang(entry);
    return entry.conductor->set_row(entry.id, std::nullopt);
  }
  entry.is_rank = true;
  entry.stop_at = std::max(entry.stop_at, bounded(*wish.stop_at));
  if (!std::exchange(entry.has_row, true)) {
    const std::uint64_t until = entry.held_term > Term{0} ? entry.stop_at : 0;
    entry.conductor->set_row(
        entry.id, sched::GangRow{until, fmt::format("waits with its gang {}", wish.of.gang)});
  }
  gang_rows_->report(report_of(entry), monotonic_now());
}

void Server::Impl::leave_gang(JobEntry& entry) {
  entry.has_row = false;
  entry.stop_at = 0;
  if (!std::exchange(entry.is_rank, false)) return;
  gang_rows_->forget(entry.id);
  settle_gangs_soon();
}

// Reports the rank as its page shows it, and as its device's machine has understood that.
host::RankReport Server::Impl::report_of(const JobEntry& entry) const {
  const auto machine = std::find_if(machines_.begin(), machines_.end(), [&](const auto& each) {
    return each.conductor.get() == entry.conductor;
  });
  host::RankReport report{.gang = {entry.uid, entry.address.gang},
                          .job = entry.id,
                          .ranks = entry.address.ranks,
                          .device = static_cast<std::size_t>(machine - machines_.begin()),
                          .is_known = entry.registration.has_value(),
                          .stop_at = entry.stop_at,
                          .has_lease = entry.held_term > Term{0},
                          .is_held_back = entry.conductor->coordinator().is_held_back(entry.id)};
  if (!entry.registration) return report;
  const wire::Usage usage = entry.registration->usage();
  report.steps = bounded(usage.gang_steps);
  report.wants = entry.is_waiting();
  report.has_lease = entry.registration->belief().lease == Belief::Lease::kOpen;
  report.is_in_gap = usage.is_in_gap;
  report.iteration = bounded(usage.phases.training.usual);
  report.switching = bounded(usage.stall);
  report.gap = bounded(std::max(usage.gap.usual, usage.gap.mean));
  report.remaining = entry.conductor->coordinator().remaining_seconds(entry.id);
  report.is_length_known = entry.conductor->coordinator().is_length_known(entry.id);
  return report;
}

void Server::Impl::settle_gangs() {
  are_gangs_due_ = false;
  const Nanos now = monotonic_now();
  for (const auto& [id, entry] : jobs_.entries()) {
    if (entry.is_rank) gang_rows_->report(report_of(entry), now);
  }
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    const sched::Coordinator& coordinator = machines_[i].conductor->coordinator();
    gang_rows_->note_singles(i, coordinator.num_singles(), coordinator.seconds_of_first_single());
  }
  gang_rows_->set_by_service((policy_.empty() ? options_.coordinator.policy : policy_) == "srtf");
  const host::RowOrders orders = gang_rows_->settle(now);
  for (const std::string& said : orders.said)
    log::debug("{}", said);
  JobsInRows machines(jobs_);
  host::carry_out(orders.ranks, machines);
  if (orders.look_at.has_value()) {
    gang_timer_.set_at(*orders.look_at);
  } else {
    gang_timer_.cancel();
  }
}

}  // namespace gpushare::daemon
