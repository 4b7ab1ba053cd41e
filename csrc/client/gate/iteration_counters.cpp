// The figures of a job's iterations. All are written by the thread that iterates, at a boundary,
// with plain loads and stores; the page gets a copy of those that others read. The figures that
// must be sorted first (iteration_times.cpp) are written to the page only when they are new.
#include "csrc/client/gate/iteration_counters.h"

#include <algorithm>

namespace gpushare::client {
namespace {

// One writer: a load and a store, not a locked instruction.
template <typename T>
void add(std::atomic<T>& counter, T amount) {
  counter.store(counter.load(kRelaxed) + amount, kRelaxed);
}

}  // namespace

// The gap ends when the thread comes for its iteration. Time in the gate is no part of it.
void IterationCounters::come(wire::LeasePage* page, Nanos now) {
  if (!is_gap_open_.load(kRelaxed)) return;
  is_gap_open_.store(false, kRelaxed);
  const bool is_new = gaps_.add(now - Nanos{changed_ns_.load(kRelaxed)});
  if (is_new && page != nullptr) publish_times(*page);
}

void IterationCounters::enter(wire::LeasePage* page, Nanos now) {
  if (is_in_iteration()) return;
  come(page, now);
  began_ns_.store(now.value(), kRelaxed);
  changed_ns_.store(now.value(), kRelaxed);
  in_iteration_.store(true, kRelaxed);
  if (page != nullptr) page->changed_ns.store(now.value(), kRelaxed);
}

// An iteration that was broken off counts as busy time and for the highest peak, and not as an
// iteration: its length and its peak say nothing of the next one.
void IterationCounters::leave(wire::LeasePage* page, Nanos now, const Boundary& boundary) {
  in_iteration_.store(false, kRelaxed);
  is_gap_open_.store(true, kRelaxed);
  const Nanos time = now - Nanos{began_ns_.load(kRelaxed)};
  add(busy_ns_, time.value());
  changed_ns_.store(now.value(), kRelaxed);
  boundary_kind_.store(static_cast<std::uint32_t>(boundary.kind), kRelaxed);
  bool are_times_new = false;
  if (boundary.is_iteration) {
    add(iterations_, std::uint64_t{1});
    if (boundary.kind != wire::BoundaryKind::kForward) add(trained_, std::uint64_t{1});
    are_times_new =
        (boundary.kind == wire::BoundaryKind::kForward ? evaluation_ : training_).add(time);
    const std::size_t slot = next_peak_.load(kRelaxed);
    peaks_[slot].store(boundary.peak.value(), kRelaxed);
    next_peak_.store((slot + 1) % kNumPeaks, kRelaxed);
  }
  if (boundary.is_optimizer_step) add(optimizer_steps_, std::uint64_t{1});
  highest_peak_.store(std::max(highest_peak_.load(kRelaxed), boundary.peak.value()), kRelaxed);
  if (page == nullptr) return;
  page->resident_bytes.store(boundary.resident.value(), kRelaxed);
  publish_counts(*page);
  if (are_times_new) publish_times(*page);
}

// Moves the beginning of the iteration forward, so its length is that of its work alone.
void IterationCounters::resume(wire::LeasePage* page, Nanos stood_still) {
  add(began_ns_, stood_still.value());
  changed_ns_.store(began_ns_.load(kRelaxed), kRelaxed);
  if (page != nullptr) page->changed_ns.store(changed_ns_.load(kRelaxed), kRelaxed);
}

void IterationCounters::publish(wire::LeasePage& page) const {
  publish_counts(page);
  publish_times(page);
}

void IterationCounters::publish_counts(wire::LeasePage& page) const {
  page.iterations.store(iterations(), kRelaxed);
  page.optimizer_steps.store(optimizer_steps(), kRelaxed);
  page.gang_steps.store(gang_steps(), kRelaxed);
  page.busy_ns.store(busy().value(), kRelaxed);
  page.changed_ns.store(changed_ns_.load(kRelaxed), kRelaxed);
  page.boundary_kind.store(boundary_kind_.load(kRelaxed), kRelaxed);
}

void IterationCounters::publish_times(wire::LeasePage& page) const {
  const wire::IterationTime training = training_.figures();
  const wire::IterationTime evaluation = evaluation_.figures();
  page.training_ns.store(training.usual.value(), kRelaxed);
  page.training_tail_ns.store(training.tail.value(), kRelaxed);
  page.evaluation_ns.store(evaluation.usual.value(), kRelaxed);
  page.evaluation_tail_ns.store(evaluation.tail.value(), kRelaxed);
  page.gap_ns.store(gaps_.figures().usual.value(), kRelaxed);
  page.mean_gap_ns.store(gaps_.mean().value(), kRelaxed);
}

// Memory that moved into the lane, or back from it, is no longer part of what the next iterations
// need in private memory, or is again. So the remembered peaks change by it.
void IterationCounters::shift_peaks(Bytes by) {
  for (auto& peak : peaks_)
    peak.store(std::max<std::int64_t>(peak.load(kRelaxed) + by.value(), 0), kRelaxed);
}

Bytes IterationCounters::expected_peak() const {
  std::int64_t highest = 0;
  for (const auto& peak : peaks_)
    highest = std::max(highest, peak.load(kRelaxed));
  return Bytes{highest};
}

}  // namespace gpushare::client
