// One side's transition with the other side's in the middle of it, at every single instruction: the
// CPU's trap flag stops after each one, and in the n-th stop the other side's transition runs. So
// every interleaving of the two is tried, whatever the machine's load, which a stress test of two
// threads hits only by luck.
//
// x86-64 only, and not under sanitizers, whose code is too long to step through.
#include "csrc/wire/lease_page.h"

#include "tests/cpp/support/sanitizers.h"

#if defined(__x86_64__) && !defined(GS_HAS_SANITIZER)
#include <signal.h>
#include <ucontext.h>
#include <x86intrin.h>

#include <cstdint>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "tests/cpp/wire/page_in_state.h"

namespace gpushare::wire {
namespace {

using testing::kTerm;
using testing::PageInState;
using testing::word_of;

constexpr long long kTrapFlag = 0x100;

// What the handler does: it has no argument for it.
std::function<void()>* intruder = nullptr;
std::uint64_t stops = 0;
std::uint64_t intrude_at = 0;

void on_trap(int /*signal*/, siginfo_t* /*info*/, void* context) {
  if (stops++ != intrude_at) return;
  (*intruder)();
  // The rest runs without stops, for time.
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
}

class TrapHandler {
 public:
  TrapHandler() {
    struct sigaction action = {};
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    EXPECT_EQ(::sigaction(SIGTRAP, &action, &before_), 0);
  }
  ~TrapHandler() { ::sigaction(SIGTRAP, &before_, nullptr); }
  TrapHandler(const TrapHandler&) = delete;
  TrapHandler& operator=(const TrapHandler&) = delete;

 private:
  struct sigaction before_ = {};
};

// Runs `stepped` with `other` after its instruction `at`; false when it has fewer.
template <typename Stepped>
bool run_with_intruder(const Stepped& stepped, std::function<void()> other, std::uint64_t at) {
  constexpr auto kFlag = static_cast<std::uint64_t>(kTrapFlag);
  const TrapHandler handler;
  intruder = &other;
  stops = 0;
  intrude_at = at;
  __writeeflags(__readeflags() | kFlag);
  stepped();
  __writeeflags(__readeflags() & ~kFlag);
  return stops > at;
}

// Both orders of who is interrupted, at every instruction; `check` looks at the page after each.
template <typename JobResult, typename CoordinatorResult, typename IsRight>
void try_all(LeaseWord start,
             JobResult (*job)(LeasePage&),
             CoordinatorResult (*coordinator)(LeasePage&),
             IsRight is_right) {
  for (const bool is_job_stepped : {true, false}) {
    for (std::uint64_t at = 0;; ++at) {
      PageInState state(start);
      JobResult of_job{};
      CoordinatorResult of_coordinator{};
      const auto run_job = [&] { of_job = job(state.page); };
      const auto run_coordinator = [&] { of_coordinator = coordinator(state.page); };
      const bool has_run = is_job_stepped ? run_with_intruder(run_job, run_coordinator, at)
                                          : run_with_intruder(run_coordinator, run_job, at);
      if (!has_run) {
        EXPECT_GT(at, 3U) << "the trap flag has no effect here";
        break;
      }
      ASSERT_TRUE(is_right(of_job, of_coordinator, load(state.page)))
          << (is_job_stepped ? "job" : "coordinator") << " interrupted after instruction " << at
          << ": job " << static_cast<int>(of_job) << ", coordinator "
          << static_cast<int>(of_coordinator) << ", word " << name_of(load(state.page).state());
    }
  }
}

AskResult ask_for_it(LeasePage& page) { return ask(page, kTerm); }
bool grant_next(LeasePage& page) { return grant(page, Term{8}); }

TEST(LeaseWordInterleaving, AnAskDuringTheEndIsSeenOrFindsTheGap) {
  try_all(word_of(LeaseState::kOpenBusy), try_end, ask_for_it,
          [](EndResult end, AskResult asked, LeaseWord word) {
            const bool is_seen = end == EndResult::kMustClose && asked == AskResult::kAsked &&
                                 word == word_of(LeaseState::kClosing);
            const bool is_taken = end == EndResult::kKept && asked == AskResult::kTakenInGap &&
                                  word == word_of(LeaseState::kClosing, true);
            return is_seen || is_taken;
          });
}

TEST(LeaseWordInterleaving, AnAskDuringTheBeginLeavesTheLeaseToOneOfThem) {
  try_all(word_of(LeaseState::kOpenGap), try_begin, ask_for_it,
          [](BeginResult begin, AskResult asked, LeaseWord word) {
            const bool is_entered = begin == BeginResult::kEntered && asked == AskResult::kAsked &&
                                    word == word_of(LeaseState::kOpenBusy, true);
            const bool is_taken = begin == BeginResult::kMustWait &&
                                  asked == AskResult::kTakenInGap &&
                                  word == word_of(LeaseState::kClosing, true);
            return is_entered || is_taken;
          });
}

TEST(LeaseWordInterleaving, OnlyOneSideBeginsTheClosing) {
  for (const LeaseState open : {LeaseState::kOpenBusy, LeaseState::kOpenGap}) {
    try_all(word_of(open), start_close, ask_for_it,
            [](bool is_job_closing, AskResult asked, LeaseWord word) {
              const bool is_taken = asked == AskResult::kTakenInGap;
              return word == word_of(LeaseState::kClosing, is_taken) && is_job_closing != is_taken;
            });
  }
}

TEST(LeaseWordInterleaving, AGrantDuringTheGivingUpIsMadeOrNot) {
  try_all(word_of(LeaseState::kWanted), give_up, grant_next,
          [](bool is_given_up, bool is_granted, LeaseWord word) {
            const LeaseWord granted(Term{8}, LeaseState::kOpenBusy, false);
            return is_given_up != is_granted &&
                   word == (is_granted ? granted : word_of(LeaseState::kIdle));
          });
}

}  // namespace
}  // namespace gpushare::wire
#endif
