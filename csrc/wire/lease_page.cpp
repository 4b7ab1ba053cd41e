// The transitions of the lease word. Each is a loop of: load, decide by the drawing, one
// compare-and-swap; a failed one decides anew on the value that was found. So an ask that arrives
// while the job ends its iteration is either seen by the end (kMustClose) or finds the gap
// (kTakenInGap); it cannot fall between.
//
// The page is a peer's memory: any bit pattern is an input, none is a reason to abort.
#include "csrc/wire/lease_page.h"

#include <atomic>
#include <cstdint>

#include "csrc/base/log.h"

namespace gpushare::wire {
namespace {

// acquire; pairs with the release of the other side's exchange: who sees the new state also sees
// what was written into the page before it (grant_n by the coordinator, the counters by the job).
LeaseWord load_word(const LeasePage& page) {
  return LeaseWord{page.word.load(std::memory_order_acquire)};
}

// acq_rel on success, acquire on failure; the partner is every other exchange and load_word() of
// the other side. Release publishes our fields of the page, acquire lets us read the other side's.
// On failure `from` is the value found.
bool exchange_word(LeasePage& page, LeaseWord& from, LeaseWord to) {
  std::uint64_t bits = from.bits();
  const bool is_exchanged = page.word.compare_exchange_weak(
      bits, to.bits(), std::memory_order_acq_rel, std::memory_order_acquire);
  if (!is_exchanged) from = LeaseWord{bits};
  return is_exchanged;
}

// `from` -> `to` with the same term and the revoke bit clear; false in any other state.
bool move_state(LeasePage& page, LeaseState from, LeaseState to) {
  LeaseWord word = load_word(page);
  while (word.state() == from) {
    if (exchange_word(page, word, LeaseWord(word.term(), to, false))) return true;
  }
  return false;
}

}  // namespace

const char* name_of(LeaseState state) {
  switch (state) {
    case LeaseState::kIdle: return "kIdle";
    case LeaseState::kWanted: return "kWanted";
    case LeaseState::kOpenBusy: return "kOpenBusy";
    case LeaseState::kOpenGap: return "kOpenGap";
    case LeaseState::kClosing: return "kClosing";
  }
  return "unknown";
}

// The fast path of an iteration. A lease that is open needs one exchange, or none where the job is
// inside an iteration already.
BeginResult try_begin(LeasePage& page) {
  LeaseWord word = load_word(page);
  while (word.state() == LeaseState::kOpenGap) {
    // By the drawing no revoke bit stands in the gap. If one did, it is kept, so that the end of
    // this iteration answers it.
    const LeaseWord busy(word.term(), LeaseState::kOpenBusy, word.is_asked());
    if (exchange_word(page, word, busy)) return BeginResult::kEntered;
  }
  // A lease that was asked back may still begin: each grant is good for at least one iteration.
  if (word.state() == LeaseState::kOpenBusy) return BeginResult::kEntered;
  return word.state() == LeaseState::kIdle ? BeginResult::kMustWant : BeginResult::kMustWait;
}

// One exchange both sees whether the coordinator has asked and moves on, so an ask is never lost
// between the two.
EndResult try_end(LeasePage& page) {
  LeaseWord word = load_word(page);
  while (word.state() == LeaseState::kOpenBusy) {
    const bool is_asked = word.is_asked();
    const LeaseState next = is_asked ? LeaseState::kClosing : LeaseState::kOpenGap;
    if (exchange_word(page, word, LeaseWord(word.term(), next, false))) {
      return is_asked ? EndResult::kMustClose : EndResult::kKept;
    }
  }
  return EndResult::kNotOpen;
}

bool want(LeasePage& page) { return move_state(page, LeaseState::kIdle, LeaseState::kWanted); }

bool give_up(LeasePage& page) { return move_state(page, LeaseState::kWanted, LeaseState::kIdle); }

// The revoke bit is cleared: in kClosing it says that the coordinator took the lease in the gap,
// and here the job gives it back by itself.
bool start_close(LeasePage& page) {
  LeaseWord word = load_word(page);
  while (word.is_open()) {
    const LeaseWord closing(word.term(), LeaseState::kClosing, false);
    if (exchange_word(page, word, closing)) return true;
  }
  return false;
}

void finish_close(LeasePage& page) {
  if (move_state(page, LeaseState::kClosing, LeaseState::kIdle)) return;
  // Either two threads of this process close, or the coordinator does not keep to the drawing. The
  // word is left as it is: making it kIdle could take an open lease from its owner.
  const LeaseWord word = load_word(page);
  log::error("job {} {} -> kIdle refused, term {}: not closing", page.job, name_of(word.state()),
             word.term().value);
}

bool grant(LeasePage& page, Term term) {
  LeaseWord word = load_word(page);
  while (word.state() == LeaseState::kWanted) {
    // The futex compares the low 32 bits, which hold the state and the low bits of the term. Both
    // change here, so a waiter that saw kWanted does not sleep on under a newer lease. The term is
    // the coordinator's own: what the page said before is not believed.
    if (exchange_word(page, word, LeaseWord(term, LeaseState::kOpenBusy, false))) return true;
  }
  return false;
}

// An ask for a lease that is closed already, or a page with a term that the coordinator did not
// grant, changes nothing and is kStale.
AskResult ask(LeasePage& page, Term term) {
  LeaseWord word = load_word(page);
  while (word.is_open() && word.term() == term) {
    const bool is_gap = word.state() == LeaseState::kOpenGap;
    const LeaseState next = is_gap ? LeaseState::kClosing : LeaseState::kOpenBusy;
    // The bit is set in both cases. In kOpenBusy it asks for the lease at the boundary; in kClosing
    // it says that the client thread is to close.
    if (exchange_word(page, word, LeaseWord(term, next, true))) {
      return is_gap ? AskResult::kTakenInGap : AskResult::kAsked;
    }
  }
  return AskResult::kStale;
}

// The term is written before the word. A job that looks between the two gives its lease up a moment
// early, which is what it is asked for.
AskResult ask_inside(LeasePage& page, Term term) {
  // relaxed: the field names the term, so whenever a job sees it, it is either right or old.
  page.urgent_term.store(term.value, std::memory_order_relaxed);
  return ask(page, term);
}

// Called at each safepoint. While nobody asked, it costs one relaxed load.
bool is_asked_inside(const LeasePage& page) {
  const std::uint64_t term = page.urgent_term.load(std::memory_order_relaxed);  // as above
  if (term == 0) return false;
  const LeaseWord word = load_word(page);
  return word.state() == LeaseState::kOpenBusy && word.term().value == term;
}

// A rank that sees a smaller stop_at than the newest stops there, and is let in again at once: the
// coordinator only ever raises it.
bool is_at_stop(const LeasePage& page) {
  const std::uint64_t stop_at = page.stop_at.load(std::memory_order_relaxed);
  return stop_at != 0 && page.gang_steps.load(std::memory_order_relaxed) >= stop_at;
}

LeaseWord load(const LeasePage& page) { return load_word(page); }

}  // namespace gpushare::wire
