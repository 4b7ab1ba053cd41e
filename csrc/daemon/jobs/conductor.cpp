// Carries out what the state machine answers, and feeds it what happens.
//
// An answer (Ready) is carried out in this order: empty slots of lanes, messages, pages, the next
// deadline, the list of pages to look at, and the counts that pages show. Messages go before pages,
// so a Grant of room is on its way when the lease opens. Jobs wait only for the first three, so the
// rest comes after them.
//
// A job rings through its eventfd, and the page is then looked at (on_event). The page is believed
// only as far as page_watch.cpp allows. At a deadline the pages that the coordinator has named are
// looked at too.
//
// What may go wrong: a page has an impossible word, or a message cannot be sent. Then the session
// is marked broken and the server closes it later. Nothing here closes a session at once, since an
// answer may be in the midst of being carried out.
#include "csrc/daemon/jobs/conductor.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/log.h"
#include "csrc/base/units.h"
#include "csrc/daemon/jobs/registration.h"
#include "csrc/wire/messages.h"

namespace gpushare::daemon {
namespace {
constexpr std::size_t kKeptDecisions = 64;
// How often the pages of one user's jobs are looked at in a second, at most. Leases cannot change
// hands that often.
constexpr double kRingsASecond = 20'000;
// When a job that rings more often than that is heard again.
constexpr Nanos kUnheard = millis(20);
}  // namespace

Conductor::Conductor(std::unique_ptr<sched::Coordinator> coordinator,
                     std::uint64_t epoch,
                     JobTable& jobs,
                     ipc::EventLoop& loop,
                     std::function<void(JobId)> on_broken)
    : coordinator_(std::move(coordinator)),
      epoch_(epoch),
      jobs_(jobs),
      loop_(loop),
      on_broken_(std::move(on_broken)),
      timer_(loop.make_timer([this] { on_deadline(); })),
      hear_timer_(loop.make_timer([this] { hear_again(); })) {}

// One step of the coordinator: the message and the time in, an answer out.
void Conductor::feed(JobId from, const wire::JobMessage& message) {
  const Nanos now = monotonic_now();
  carry_out(coordinator_->on_message(from, message, now), now);
}

void Conductor::set_suspended(JobId job, bool is_suspended) {
  const Nanos now = monotonic_now();
  carry_out(coordinator_->set_suspended(job, is_suspended, now), now);
}

// A change may decide who can interrupt whom, so the pages of all jobs are written anew.
Status Conductor::set(JobId job, const wire::Changes& changes, const sched::Requester& by) {
  const Nanos now = monotonic_now();
  are_others_new_ = true;
  return carry_out_if_done(coordinator_->set(job, changes, by, now), now);
}

void Conductor::set_row(JobId job, std::optional<sched::GangRow> row) {
  const Nanos now = monotonic_now();
  carry_out(coordinator_->set_row(job, std::move(row), now), now);
}

Status Conductor::set_policy(const std::string& name) {
  const Nanos now = monotonic_now();
  are_others_new_ = true;
  return carry_out_if_done(coordinator_->set_policy(name, now), now);
}

Status Conductor::carry_out_if_done(Result<sched::Ready> ready, Nanos now) {
  if (!ready.has_value()) return std::move(ready.error());
  carry_out(std::move(*ready), now);
  return {};
}

void Conductor::expected_pid_gone(std::int32_t pid) {
  const Nanos now = monotonic_now();
  carry_out(coordinator_->on_expected_pid_gone(pid, now), now);
}

// The eventfd is what the job rings with when it has changed its page. Both sides have it, so the
// job may write to it at any time.
Status Conductor::watch_event(JobEntry& entry) {
  const JobId id = entry.id;
  auto watch = loop_.watch(entry.registration->event_fd(), [this, id] { on_event(id); });
  if (!watch) return watch.error();
  entry.event_watch = std::move(*watch);
  return {};
}

// A job rings. Beyond its user's rate the event is not watched for a while: the kernel would report
// it without end, as nobody reads the counter.
void Conductor::on_event(JobId id) {
  JobEntry* entry = jobs_.find(id);
  if (entry == nullptr || !entry->registration) return;
  const Nanos now = monotonic_now();
  if (!rings_.try_emplace(entry->uid, kRingsASecond, kRingsASecond).first->second.take(now)) {
    entry->event_watch.reset();
    if (unheard_.empty()) hear_timer_.set_at(now + kUnheard);
    unheard_.push_back(id);
    return;
  }
  entry->registration->drain_event();
  if (look(*entry) || !entry->registration) return;
  // The word has no news, so the job rang for another reason: whether its memory may move in the
  // gap has changed.
  if (entry->registration->belief().lease == Belief::Lease::kNone) {
    feed(id, wire::Observed{entry->address, entry->registration->usage()});
  }
}

// Watches the events again that came too often. What was rung meanwhile is still counted in them,
// so nothing is lost.
void Conductor::hear_again() {
  for (const JobId id : std::exchange(unheard_, {})) {
    JobEntry* const entry = jobs_.find(id);
    if (entry == nullptr || !entry->registration || entry->event_watch.is_active()) continue;
    if (Status status = watch_event(*entry); !status.ok()) mark_broken(*entry, status.message());
  }
}

// Reads the word and feeds what must have happened since the last look. The count of waiting jobs
// follows. Feeding may end the registration, so nothing of it is used afterwards. Returns whether
// there was news.
bool Conductor::look(JobEntry& entry) {
  if (!entry.registration) return true;
  const bool was_waiting = entry.is_waiting();
  PageNews news = entry.registration->look(entry.address);
  if (!news.breach.empty()) {
    mark_broken(entry, std::move(news.breach));
    return true;
  }
  note_waiting(was_waiting, entry);
  const JobId id = entry.id;  // feeding may end the registration, never the entry
  for (const wire::JobMessage& message : news.messages) {
    // A job without a connection cannot be told of a grant's room. So only what it gives back
    // counts, and its wish for a lease is dropped.
    if (entry.session == nullptr && std::holds_alternative<wire::Wanted>(message)) {
      forget_waiting(entry);
      continue;
    }
    feed(id, message);
  }
  return !news.messages.empty();
}

void Conductor::carry_out(sched::Ready ready, Nanos now) {
  lane_files_.carry_out(ready.lane_actions);
  for (const sched::Outbound& outbound : ready.messages) {
    deliver(outbound);
  }
  for (const sched::PageAction& action : ready.page_actions) {
    act(action, now);
  }
  // No job waits for anything from here on.
  if (ready.next_deadline) {
    timer_.set_at(*ready.next_deadline);
  } else {
    timer_.cancel();
  }
  observe_ = std::move(ready.observe);
  keep(std::move(ready.decisions));
  if (is_num_waiting_new_) publish_waiting();
  if (are_others_new_ || ready.is_sharing_new) publish_others();
  if (coordinator_->has_transfer_budget()) publish_transfer_rates();
  if (on_answer_) on_answer_();
}

// Without a page there is nothing to do: the action is logged and left out. The coordinator hears
// of a job's end by other ways.
void Conductor::act(const sched::PageAction& action, Nanos now) {
  JobEntry* entry = jobs_.find(action.job);
  if (entry == nullptr || !entry->registration) {
    log::error("job {} term {}: no page to act on", action.job.value, action.term.value);
    return;
  }
  switch (action.kind) {
    case sched::PageAction::Kind::kGrant: return act_grant(*entry, action, now);
    case sched::PageAction::Kind::kShareCores:
      return entry->registration->set_core_share(action.cores);
    case sched::PageAction::Kind::kSayProgram:
      return entry->registration->set_program_waiting(action.is_program_waiting);
    default: return act_ask(*entry, action);
  }
}

// Opens the word and wakes the job. If the job gave up at that moment, the page is looked at again,
// and the coordinator hears of it.
void Conductor::act_grant(JobEntry& entry, const sched::PageAction& action, Nanos now) {
  const bool was_waiting = entry.is_waiting();
  const bool is_granted = entry.registration->grant(action.term, action.grant_n, now);
  note_waiting(was_waiting, entry);
  if (!is_granted) look_soon(entry.id);
  log::debug("job {} kWanted -> kOpenBusy term {}{}", entry.id.value, action.term.value,
             is_granted ? "" : ": no longer wanted");
}

// Asks for the lease through the page. In the gap the word becomes kClosing at once, and the
// message Close makes the job's client thread finish. A stale term means that the word has changed
// since; the page is looked at again.
void Conductor::act_ask(JobEntry& entry, const sched::PageAction& action) {
  const Term term = action.term;
  const bool is_inside = action.kind == sched::PageAction::Kind::kAskInside;
  switch (is_inside ? entry.registration->ask_inside(term) : entry.registration->ask(term)) {
    case wire::AskResult::kAsked: break;
    case wire::AskResult::kTakenInGap: send(entry, wire::Close{entry.address, term}, {}); break;
    case wire::AskResult::kStale: look_soon(entry.id); break;
  }
}

// Looks in a later turn of the loop. The answer that is being carried out comes first.
void Conductor::look_soon(JobId id) {
  loop_.post([this, id] {
    if (JobEntry* entry = jobs_.find(id)) look(*entry);
  });
}

// The coordinator wants to see these pages before it decides. A look may bring news, which are fed
// at once, and after which a job may be gone. The list is taken out of its member, because each
// step replaces it.
void Conductor::on_deadline() {
  const std::vector<JobId> observe = std::exchange(observe_, {});
  for (const JobId id : observe) {
    JobEntry* entry = jobs_.find(id);
    if (entry != nullptr && entry->registration) look(*entry);
  }
  std::vector<wire::Observed> seen;
  for (const JobId id : observe) {
    const JobEntry* entry = jobs_.find(id);
    if (entry == nullptr || !entry->registration) continue;
    seen.push_back({entry->address, entry->registration->usage()});
  }
  const Nanos now = monotonic_now();
  carry_out(coordinator_->on_deadline(now, seen), now);
}

// Keeps the newest decisions for `gpushare status` and logs them. Most are debug lines.
void Conductor::keep(std::vector<sched::Decision> decisions) {
  for (sched::Decision& decision : decisions) {
    const bool is_warning =
        decision.what == "warn" || decision.what == "host_full" || decision.what == "suspended";
    if (is_warning) {
      log::warn("{}", decision.reason);
    } else {
      log::debug("job {} {}: {}", decision.job.value, decision.what, decision.reason);
    }
    decisions_.push_back(std::move(decision));
    if (decisions_.size() > kKeptDecisions) decisions_.pop_front();
  }
}

}  // namespace gpushare::daemon
