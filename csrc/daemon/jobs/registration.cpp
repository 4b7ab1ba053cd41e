// One lease page on the coordinator's side. The coordinator makes the page, so its size is sealed
// and its first content is known; after that a job may write anything to it. Reads go through
// wire::read_usage, which bounds them.
//
// A grant is the only write that others are ordered by: number and time of the grant are stored
// before the word changes. All other fields are hints, and a job that sees an old value loses only
// time.
#include "csrc/daemon/jobs/registration.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/base/units.h"
#include "csrc/ipc/futex.h"
#include "csrc/ipc/shared_memory.h"
#include "csrc/ipc/socket.h"
#include "csrc/wire/lease_page.h"

namespace gpushare::daemon {
namespace {

Bytes read_bytes(const std::atomic<std::int64_t>& field) {
  // relaxed: a counter for the eyes; nothing is ordered by it.
  return Bytes{std::max<std::int64_t>(0, field.load(std::memory_order_relaxed))};
}

}  // namespace

Registration::Registration(ipc::SharedMemory memory, UniqueFd event, Belief belief)
    : memory_(std::move(memory)), event_(std::move(event)), belief_(belief) {}

// A page of zeros is a valid page without a lease, so only the head has to be written, and the word
// of a job that holds a lease already.
Result<Registration> Registration::create(std::uint64_t epoch, const wire::Address& of, Term held) {
  auto memory = ipc::SharedMemory::create("gpushare-lease-" + std::to_string(of.job.value),
                                          Bytes{wire::kPageBytes});
  if (!memory) return fail(memory.error());
  UniqueFd event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event.is_valid()) return fail(errno_status("eventfd"));
  auto* page = new (memory->data()) wire::LeasePage{};
  wire::initialise(*page, epoch, of);
  Belief belief;
  if (held.value != 0) {
    belief = {Belief::Lease::kOpen, held};
    // relaxed: nobody else has the page yet; sending its descriptor orders this.
    page->word.store(wire::LeaseWord(held, wire::LeaseState::kOpenBusy, false).bits(),
                     std::memory_order_relaxed);
  }
  return Registration(std::move(*memory), std::move(event), belief);
}

// It does not matter whether something was there: the caller looks at the page in any case.
void Registration::drain_event() { ipc::drain_event(event_.get()); }

// The word is read before the figures, so the figures are at least as new as the news.
PageNews Registration::look(const wire::Address& of) {
  const wire::LeaseWord word = wire::load(page());
  PageNews news = read_news(belief_, word, of, usage());
  belief_ = news.belief;
  return news;
}

wire::Usage Registration::usage() const { return wire::read_usage(page()); }

// All threads that wait on the word are woken. false: the job gave up at this moment. The belief is
// open all the same, as the coordinator's is; the next look then finds that the lease is closed.
bool Registration::grant(Term term, std::uint64_t grant_n, Nanos now) {
  belief_ = {Belief::Lease::kOpen, term};
  // relaxed: published by the release of the word's change in wire::grant; the job's acquire load
  // of the word is the partner.
  page().grant_n.store(grant_n, std::memory_order_relaxed);
  page().granted_ns.store(now.value(), std::memory_order_relaxed);
  if (!wire::grant(page(), term)) return false;
  ipc::futex_wake(ipc::low_half(page().word), INT_MAX);
  return true;
}

wire::AskResult Registration::ask(Term term) { return wire::ask(page(), term); }

wire::AskResult Registration::ask_inside(Term term) { return wire::ask_inside(page(), term); }

void Registration::set_stop_at(std::uint64_t step) {
  // relaxed: a grant that follows orders it. A job that runs may see a larger one late, which costs
  // it one turn.
  page().stop_at.store(step, std::memory_order_relaxed);
}

void Registration::set_num_waiting(std::uint32_t count) {
  // relaxed: a hint for the job's report; nothing is ordered by it.
  page().num_waiting.store(count, std::memory_order_relaxed);
}

void Registration::set_num_sharing(std::uint32_t count) {
  // relaxed: whether it is worth while to promote; nothing is ordered by it.
  page().num_sharing.store(count, std::memory_order_relaxed);
}

void Registration::set_may_be_interrupted(bool may_be) {
  // relaxed: whether safepoints are worth while; nothing is ordered by it.
  page().may_be_interrupted.store(may_be ? 1 : 0, std::memory_order_relaxed);
}

void Registration::set_program_waiting(bool is_waiting) {
  // relaxed: the job looks several times a second; nothing is ordered by it.
  page().is_program_waiting.store(is_waiting ? 1 : 0, std::memory_order_relaxed);
}

void Registration::set_core_share(wire::CoreShare share) {
  // relaxed: the job looks at each iteration; nothing is ordered by it.
  page().core_share.store(wire::to_bits(share), std::memory_order_relaxed);
}

void Registration::set_transfer_rate(Bytes rate) {
  // relaxed: the job looks again every few milliseconds; nothing is ordered by it.
  page().transfer_rate.store(rate.value(), std::memory_order_relaxed);
}

// The coordinator has dropped the job's wish. The next look finds kWanted again, if it still is.
void Registration::forget_waiting() {
  if (belief_.lease == Belief::Lease::kWaiting) belief_.lease = Belief::Lease::kNone;
}

// Sums that only reports show.
Registration::Totals Registration::totals() const {
  const wire::LeasePage& fields = page();
  return {read_bytes(fields.dropped_total_bytes), read_bytes(fields.spilled_total_bytes),
          read_bytes(fields.restored_total_bytes)};
}

bool Registration::is_held_back() const {
  // relaxed: only reports show it; nothing is ordered by it.
  return page().is_held_back.load(std::memory_order_relaxed) != 0;
}

}  // namespace gpushare::daemon
