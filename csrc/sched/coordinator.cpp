// One call of the coordinator is one step, of these parts:
//
// 1. begin_step() charges the time since the step before, so that the books are up to date when
//    something is decided.
// 2. validate() looks at the message. A message that cannot be right changes nothing, and its
//    sender is refused. Time goes on all the same, so the step still serves.
// 3. A handler (events/) changes the table by what the message says. It grants nothing. A Need that
//    can never be met is denied there, and a rank that joins a gang whose lease is asked back is
//    asked too.
// 4. serve() draws all conclusions: room, leases, questions to holders, and the next deadline.
// 5. The caller carries out the Ready that results, and calls on_deadline() when that says so.
//
// A message from a job also shows that its process runs, so it ends a suspension that the daemon
// has not seen end. What the daemon says of a job by itself (Observed, Lost, Gone) shows no such
// thing.
#include "csrc/sched/coordinator.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/sched/events/change.h"
#include "csrc/sched/events/handlers.h"
#include "csrc/sched/events/validate.h"
#include "csrc/sched/memory/host_tier.h"
#include "csrc/sched/memory/lanes.h"
#include "csrc/sched/memory/transfer.h"
#include "csrc/sched/report/explain.h"
#include "csrc/sched/report/snapshot.h"
#include "csrc/sched/report/why.h"
#include "csrc/sched/serve/invariants.h"
#include "csrc/sched/serve/serve.h"
#include "csrc/sched/table/options.h"
#include "csrc/sched/table/table.h"
#include "csrc/sched/time/begin_step.h"
#include "csrc/sched/time/share_limit.h"
#include "csrc/sched/turns/interrupt.h"
#include "csrc/sched/turns/row.h"
#include "csrc/sched/turns/suspended.h"
#include "csrc/wire/messages.h"

namespace gpushare::sched {

class Coordinator::Impl {
 public:
  explicit Impl(Table table) : table_(std::move(table)) {}

  [[nodiscard]] const Table& table() const { return table_; }
  [[nodiscard]] Table& table() { return table_; }

  // A refused message changes nothing, but time goes on: deadlines are answered anew each step.
  Ready step(JobId from, const wire::JobMessage& message, Nanos now) {
    Step step = begin_step(table_, now, false);
    hear(step, from, message);
    return finish(step);
  }

  // Many pages may be looked at for one decision, so all of them are heard before it is made.
  Ready deadline(std::span<const wire::Observed> seen, Nanos now) {
    Step step = begin_step(table_, now, true);
    for (const wire::Observed& each : seen)
      hear(step, each.of.job, each);
    return finish(step);
  }

  Ready finish(Step& step) {
    serve(step);
    GS_EXPENSIVE_CHECK(sched::check_invariants(table_));
    return step.take();
  }

 private:
  void hear(Step& step, JobId from, const wire::JobMessage& message) {
    const Status status = validate(table_, from, message);
    if (status.ok()) {
      if (is_of_a_running_process(message)) note_running(step, from);
      std::visit([&](const auto& m) { handle(step, from, m); }, message);
    } else if (!is_of_an_unknown_end(from, message)) {
      step.refuse(from, status.message());
    }
  }
  // The daemon looks at pages, and sees ends, by itself.
  static bool is_of_a_running_process(const wire::JobMessage& message) {
    return !std::holds_alternative<wire::Observed>(message) &&
           !std::holds_alternative<wire::Lost>(message) &&
           !std::holds_alternative<wire::Gone>(message);
  }
  void note_running(Step& step, JobId from) {
    const Job* const job = std::as_const(table_).find(from);
    if (job != nullptr && job->place.is_suspended()) {
      sched::set_suspended(step, table_.at(from), false);
    }
  }

  // A connection that ended before its Hello: there is nobody to refuse.
  [[nodiscard]] bool is_of_an_unknown_end(JobId from, const wire::JobMessage& message) const {
    const bool is_end =
        std::holds_alternative<wire::Lost>(message) || std::holds_alternative<wire::Gone>(message);
    return is_end && table_.find(from) == nullptr;
  }

  void handle(Step& step, JobId from, const wire::Hello& m) { on_hello(step, from, m); }
  void handle(Step& step, JobId from, const wire::Register& m) {
    on_register(step, table_.at(from), m);
  }
  void handle(Step& step, JobId from, const wire::Unregister& /*m*/) {
    on_unregister(step, table_.at(from));
  }
  void handle(Step& step, JobId from, const wire::Need& m) { on_need(step, table_.at(from), m); }
  void handle(Step& step, JobId from, const wire::Released& m) {
    on_released(step, table_.at(from), m);
  }
  void handle(Step& step, JobId from, const wire::Consumed& m) {
    on_consumed(step, table_.at(from), m);
  }
  void handle(Step& step, JobId from, const wire::LaneChanged& m) {
    on_lane_changed(step, table_.at(from), m);
  }
  void handle(Step& step, JobId from, const wire::Explain& /*m*/) {
    step.send(from, wire::Explained{.of = table_.at(from).who.of,
                                    .text = sched::explain(table_, from, step.now())});
  }
  void handle(Step& step, JobId from, const wire::Wanted& m) {
    on_wanted(step, table_.at(from), m);
  }
  void handle(Step& step, JobId from, const wire::GaveUp& /*m*/) {
    on_gave_up(step, table_.at(from));
  }
  void handle(Step& step, JobId from, const wire::Closed& m) {
    on_closed(step, table_.at(from), m);
  }
  void handle(Step& step, JobId from, const wire::Observed& m) {
    on_observed(step, table_.at(from), m);
  }
  void handle(Step& step, JobId from, const wire::Lost& /*m*/) { on_lost(step, table_.at(from)); }
  void handle(Step& step, JobId from, const wire::Gone& /*m*/) { on_gone(step, table_.at(from)); }
  template <typename Other>
  void handle(Step& /*step*/, JobId /*from*/, const Other& /*m*/) {
    // validate() refuses them: they are for the daemon.
    GS_CHECK(false, "{} reached a handler", Other::kType);
  }

  Table table_;
};

Coordinator::Coordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinator::~Coordinator() = default;

Result<std::unique_ptr<Coordinator>> Coordinator::create(const CoordinatorOptions& options,
                                                         Nanos now) {
  auto table = make_table(options, now);
  if (!table.has_value()) return fail(table.error());
  return std::unique_ptr<Coordinator>(new Coordinator(std::make_unique<Impl>(std::move(*table))));
}

Ready Coordinator::on_message(JobId from, const wire::JobMessage& message, Nanos now) {
  return impl_->step(from, message, now);
}

// Nothing was said, and time has passed: rules may end a lease, and waits may be over.
Ready Coordinator::on_deadline(Nanos now, std::span<const wire::Observed> seen) {
  return impl_->deadline(seen, now);
}

// After a restart the coordinator waits for the jobs that the one before had. One of them has ended
// and will not come back, so there may be nobody left to wait for.
Ready Coordinator::on_expected_pid_gone(std::int32_t pid, Nanos now) {
  impl_->table().expected.erase(pid);
  Step step = begin_step(impl_->table(), now, false);
  return impl_->finish(step);
}

// The daemon looks at processes now and then, and may speak of a job that has gone since.
Ready Coordinator::set_suspended(JobId job, bool is_suspended, Nanos now) {
  Step step = begin_step(impl_->table(), now, false);
  Job* const found = impl_->table().find(job);
  if (found != nullptr) sched::set_suspended(step, *found, is_suspended);
  return impl_->finish(step);
}

// The layer above has decided about a gang's rank. The job may have gone since.
Ready Coordinator::set_row(JobId job, std::optional<GangRow> row, Nanos now) {
  Step step = begin_step(impl_->table(), now, false);
  Job* const found = impl_->table().find(job);
  if (found != nullptr) sched::set_row(step, *found, std::move(row));
  return impl_->finish(step);
}

Singles Coordinator::singles(Nanos now) const { return singles_on(impl_->table(), now); }

Standing Coordinator::standing(JobId job) const {
  const Job* const found = impl_->table().find(job);
  return found == nullptr ? Standing{} : found->standing();
}

Setback Coordinator::setback(JobId job) const {
  const Job* const found = impl_->table().find(job);
  return found == nullptr ? Setback::kNone : sched::setback(impl_->table(), *found);
}

// Whether a rank could not use a row now: it is paused, at a limit, or its connection is lost.
bool Coordinator::is_held_back(JobId job) const {
  const Job* const found = impl_->table().find(job);
  return found == nullptr || !found->may_queue() || !found->is_connected();
}

// A person's change is a step like a message: it is refused, or all that follows from it is done at
// once.
Result<Ready> Coordinator::set(JobId job,
                               const wire::Changes& changes,
                               const Requester& by,
                               Nanos now) {
  Step step = begin_step(impl_->table(), now, false);
  Status status = change_job(step, job, changes, by);
  if (!status.ok()) return fail(std::move(status));
  return impl_->finish(step);
}

Result<Ready> Coordinator::set_policy(const std::string& name, Nanos now) {
  Step step = begin_step(impl_->table(), now, false);
  Status status = change_policy(step, name);
  if (!status.ok()) return fail(std::move(status));
  return impl_->finish(step);
}

void Coordinator::set_profiles(Profiles profiles) { impl_->table().profiles = std::move(profiles); }

const Profiles& Coordinator::profiles() const { return impl_->table().profiles; }

// Only shown and warned of: processes that use the device without this coordinator.
void Coordinator::set_unmanaged(std::vector<UnmanagedProcess> processes) {
  impl_->table().unmanaged = std::move(processes);
}

HostBytes Coordinator::host_used() const { return sched::host_used(impl_->table()); }

void Coordinator::set_host_used_elsewhere(const HostBytes& bytes) {
  impl_->table().host_used_elsewhere = bytes;
}

Snapshot Coordinator::snapshot(Nanos now) const { return make_snapshot(impl_->table(), now); }

std::optional<JobRow> Coordinator::row(JobId job, Nanos now) const {
  const Job* const found = impl_->table().find(job);
  if (found == nullptr) return std::nullopt;
  return job_row(impl_->table(), *found, now);
}

std::string Coordinator::explain(JobId job, Nanos now) const {
  return sched::explain(impl_->table(), job, now);
}

std::optional<Why> Coordinator::why(JobId job, Nanos now) const {
  const Job* const found = impl_->table().find(job);
  if (found == nullptr) return std::nullopt;
  return sched::why(impl_->table(), *found, now);
}

std::vector<JobId> Coordinator::order(std::size_t n) const {
  return impl_->table().device.lanes.front().waiting.order(n);
}

std::size_t Coordinator::num_jobs() const { return impl_->table().jobs.size(); }

std::optional<std::uint32_t> Coordinator::paused_by(JobId job) const {
  const Job* const found = impl_->table().find(job);
  return found == nullptr ? std::nullopt : found->settings.paused_by;
}

std::size_t Coordinator::num_sharing(JobId job) const {
  const Job* const found = impl_->table().find(job);
  return found == nullptr ? 0 : sched::num_sharing(impl_->table(), *found);
}

// The daemon asks for a job by its number, and the job may have gone since. Then the answer is that
// nothing is to be done.
bool Coordinator::has_interrupter(JobId job) const {
  const Job* const found = impl_->table().find(job);
  return found != nullptr && sched::has_interrupter(impl_->table(), *found);
}

bool Coordinator::has_transfer_budget() const {
  return impl_->table().options.transfer_budget > Bytes{0};
}

Bytes Coordinator::transfer_rate(JobId job) const {
  const Job* const found = impl_->table().find(job);
  if (found == nullptr) return {};
  return sched::transfer_rate(impl_->table().device, *found);
}

void Coordinator::check_invariants() const { sched::check_invariants(impl_->table()); }

}  // namespace gpushare::sched
