// Messages to jobs, and what their pages show of others.
//
// Two messages carry descriptors, and each is prepared here. Registered brings a new page and its
// eventfd, in place of the page before. LaneTable brings the file of the user's lane. A job without
// a connection gets nothing: it says Hello again, and Welcome tells it what it missed.
//
// What may go wrong: there is no descriptor or memory for a page or a lane. Then the job's session
// is marked broken.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/status.h"
#include "csrc/daemon/jobs/conductor.h"
#include "csrc/daemon/jobs/registration.h"
#include "csrc/wire/coordinator_messages.h"

namespace gpushare::daemon {

// Three kinds need more than a send: Registered carries the page and its eventfd, LaneTable carries
// the lane's file, and Refused ends the connection after it.
void Conductor::deliver(const sched::Outbound& outbound) {
  JobEntry* entry = jobs_.find(outbound.to);
  if (entry == nullptr) return;  // gone meanwhile
  if (std::holds_alternative<wire::Registered>(outbound.message)) {
    deliver_registered(*entry, outbound.message);
    return;
  }
  if (std::holds_alternative<wire::LaneTable>(outbound.message)) {
    deliver_lane(*entry, outbound.message);
    return;
  }
  if (std::holds_alternative<wire::Welcome>(outbound.message)) entry->is_welcomed = true;
  send(*entry, outbound.message, {});
  if (const auto* refused = std::get_if<wire::Refused>(&outbound.message)) {
    mark_broken(*entry, refused->reason);
  }
}

// Without the file the job could not use what it is told, so the connection ends, and the job asks
// anew.
void Conductor::deliver_lane(JobEntry& entry, const wire::CoordinatorMessage& message) {
  const auto file = lane_files_.file_of(entry.uid);
  if (file) {
    send(entry, message, {*file});
  } else {
    mark_broken(entry, file.error().message());
  }
}

// Ends the registration before and makes a new one. A job that said in its Hello that it holds a
// lease gets a page with that lease open.
void Conductor::deliver_registered(JobEntry& entry, const wire::CoordinatorMessage& message) {
  forget_waiting(entry);
  entry.end_registration();
  auto registration =
      Registration::create(epoch_, entry.address, std::exchange(entry.held_term, {}));
  if (!registration) {
    mark_broken(entry, registration.error().message());
    return;
  }
  entry.registration = std::move(*registration);
  entry.registration->set_stop_at(entry.rank ? entry.rank->stop_at : 0);
  if (Status status = watch_event(entry); !status.ok()) {
    entry.end_registration();
    mark_broken(entry, status.message());
    return;
  }
  entry.registered_at = monotonic_now();
  is_num_waiting_new_ = true;
  are_others_new_ = true;
  send(entry, message, {entry.registration->page_fd(), entry.registration->event_fd()});
}

void Conductor::send(JobEntry& entry,
                     const wire::CoordinatorMessage& message,
                     const std::vector<int>& fds) {
  // A lost job learns from Welcome what it missed.
  if (entry.session == nullptr || entry.session->is_broken()) return;
  const Status status = entry.session->send(message, fds);
  if (!status.ok()) on_broken_(entry.id);
}

// The first reason counts. on_broken_ closes the session in a later turn of the loop.
void Conductor::mark_broken(JobEntry& entry, std::string reason) {
  if (entry.session == nullptr || entry.session->is_broken()) return;
  entry.session->mark_broken(std::move(reason));
  on_broken_(entry.id);
}

// The job no longer counts among those who wait.
void Conductor::forget_waiting(JobEntry& entry) {
  are_others_new_ = true;  // it may have been the last to share with
  if (!entry.registration) return;
  const bool was_waiting = entry.is_waiting();
  entry.registration->forget_waiting();
  note_waiting(was_waiting, entry);
}

// `was_waiting`: before the change. The count then follows without a look at all jobs.
void Conductor::note_waiting(bool was_waiting, const JobEntry& entry) {
  if (was_waiting == entry.is_waiting()) return;
  num_waiting_ += was_waiting ? static_cast<std::uint32_t>(-1) : 1U;
  is_num_waiting_new_ = true;
}

// Whether the job has a page, and turns on this device.
bool Conductor::is_mine(const JobEntry& entry) const {
  return entry.registration && entry.conductor == this;
}

// Writes to each page how many jobs may share its lane's pool, and whether any job may interrupt
// its iteration.
void Conductor::publish_others() {
  are_others_new_ = false;
  for (auto& [id, entry] : jobs_.entries()) {
    if (!is_mine(entry)) continue;
    const std::size_t num = coordinator_->num_sharing(id);
    entry.registration->set_num_sharing(static_cast<std::uint32_t>(num));
    entry.registration->set_may_be_interrupted(coordinator_->has_interrupter(id));
  }
}

// Only with a budget: otherwise the pages say 0, which is no limit.
void Conductor::publish_transfer_rates() {
  for (auto& [id, entry] : jobs_.entries()) {
    if (is_mine(entry)) entry.registration->set_transfer_rate(coordinator_->transfer_rate(id));
  }
}

// Writes to each page how many others wait for a lease, in all lanes together.
void Conductor::publish_waiting() {
  is_num_waiting_new_ = false;
  for (auto& [id, entry] : jobs_.entries()) {
    if (!is_mine(entry)) continue;
    entry.registration->set_num_waiting(num_waiting_ - (entry.is_waiting() ? 1U : 0U));
  }
}

}  // namespace gpushare::daemon
