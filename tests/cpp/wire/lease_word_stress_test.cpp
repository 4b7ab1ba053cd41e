// A job's thread and a coordinator's thread on one page. What each writes while the lease is its
// own is plain memory here, so a thread sanitizer also judges the orders of the transitions.
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "csrc/wire/lease_page.h"

namespace gpushare::wire {
namespace {

constexpr std::uint64_t kLeases = 4000;

// Spins, since the races of interest are a few instructions wide and a thread that yields is not in
// one; yields now and then, for machines where the other thread waits for this core.
class Pause {
 public:
  void operator()() {
    if (++spins_ % 1024 == 0) std::this_thread::yield();
  }

 private:
  std::uint64_t spins_ = 0;
};

struct Shared {
  LeasePage page{};
  std::uint64_t iterations = 0;      // plain; the job's while a lease is open
  std::uint64_t granted_by = 0;      // plain; the coordinator's while none is open
  std::atomic<bool> is_over{false};  // release by the coordinator, acquire by the job
};

// Ends an iteration as the gate does.
void end_iteration(Shared& shared) {
  if (try_end(shared.page) == EndResult::kMustClose) finish_close(shared.page);
}

// One pass of the gate; whether an iteration ran. This thread is also the client thread, which
// closes what was taken in the gap.
bool run_iteration(Shared& shared, std::uint64_t& leases_seen, Pause& pause) {
  switch (try_begin(shared.page)) {
    case BeginResult::kMustWant: want(shared.page); return false;
    case BeginResult::kMustWait:
      if (const LeaseWord word = load(shared.page);
          word.state() == LeaseState::kClosing && word.is_asked()) {
        finish_close(shared.page);
      }
      pause();
      return false;
    case BeginResult::kEntered: break;
  }
  const std::uint64_t term = load(shared.page).term().value;
  EXPECT_EQ(shared.granted_by, term);
  EXPECT_GE(term, leases_seen);
  leases_seen = term;
  ++shared.iterations;
  // Now and then the job closes unasked, as after an exception.
  if (shared.iterations % 97 == 0 && start_close(shared.page)) finish_close(shared.page);
  end_iteration(shared);
  return true;
}

void run_job(Shared& shared) {
  std::uint64_t leases_seen = 0;
  Pause pause;
  while (!shared.is_over.load(std::memory_order_acquire)) {
    run_iteration(shared, leases_seen, pause);
  }
  EXPECT_EQ(leases_seen, kLeases);
}

// Waits until the lease `term` is closed, asking for it; how it was answered does not matter, only
// that it was, and that an ask once made is never followed by a gap of the same term.
void take_back(Shared& shared, Term term, std::uint64_t& taken_in_gap) {
  const AskResult result = ask(shared.page, term);
  if (result == AskResult::kTakenInGap) ++taken_in_gap;
  Pause pause;
  while (true) {
    const LeaseWord word = load(shared.page);
    EXPECT_EQ(word.term(), term);
    if (!word.is_open() || ::testing::Test::HasFailure()) return;
    EXPECT_EQ(word.state(), LeaseState::kOpenBusy) << "the ask was lost";
    EXPECT_TRUE(word.is_asked());
    pause();
  }
}

TEST(LeaseWordStress, EveryAskIsAnsweredAndTermsNeverFall) {
  // Not on the stack: clang 14's ThreadSanitizer was seen to miss races on the main thread's stack.
  const auto owned = std::make_unique<Shared>();
  Shared& shared = *owned;
  initialise(shared.page, 1, {.job = JobId{1}});
  std::thread job([&shared] { run_job(shared); });

  std::uint64_t taken_in_gap = 0;
  std::uint64_t iterations_before = 0;
  Pause pause;
  for (std::uint64_t n = 1; n <= kLeases && !::testing::Test::HasFailure(); ++n) {
    while (load(shared.page).state() != LeaseState::kWanted) {
      pause();
    }
    // No lease is open: both plain fields are ours to look at.
    EXPECT_TRUE(n == 1 || shared.iterations > iterations_before) << "a grant without an iteration";
    iterations_before = shared.iterations;
    shared.granted_by = n;
    EXPECT_TRUE(grant(shared.page, Term{n}));
    // Until the job is in its lease, and then a little, so that asks fall everywhere.
    while (load(shared.page).state() == LeaseState::kOpenBusy && n % 4 != 0) {
      pause();
    }
    for (std::uint64_t spin = 0; spin < n % 64; ++spin) {
      pause();
    }
    take_back(shared, Term{n}, taken_in_gap);
  }
  // The job's last look at the word may still be in the last lease.
  while (load(shared.page).state() != LeaseState::kWanted && !::testing::Test::HasFailure()) {
    pause();
  }
  shared.is_over.store(true, std::memory_order_release);
  job.join();
  RecordProperty("taken_in_gap", static_cast<int>(taken_in_gap));
}

}  // namespace
}  // namespace gpushare::wire
