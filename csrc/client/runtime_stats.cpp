// Figures of the job: on its page, in stats(), and the coordinator's explanation of why it waits.
//
// There are two ways to the page. publish_usage() writes everything, exactly, where a hand-over may
// follow. refresh_usage() runs at every boundary without the lock; it reads the allocator's figures
// only every 100 ms, since that copies a large struct.
#include <algorithm>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/client/runtime_impl.h"
#include "csrc/wire/job_messages.h"

namespace gpushare::client {
namespace {

void store(std::atomic<std::int64_t>& field, Bytes bytes) { field.store(bytes.value(), kRelaxed); }

// The free bytes of the device belong to the resident bytes of the same moment. So they are set to
// unknown (0) before the resident bytes change, and are written again after.
void store_resident(wire::LeasePage& page, Bytes resident) {
  page.device_free_bytes.store(0, kRelaxed);
  // release; pairs with the reader's acquire: who sees these bytes sees that.
  page.resident_bytes.store(resident.value(), std::memory_order_release);
}

}  // namespace

// Writes all figures. Called under the lock, where a hand-over may follow.
void Runtime::Impl::publish_usage(wire::LeasePage& page) {
  const alloc::MemoryStats memory = allocator_.stats();
  const Bytes resident{memory.reserved_bytes.all.current};
  figures_.set_outside(memory.outside_bytes);
  store(page.live_bytes, live_bytes(memory));
  store_resident(page, resident);
  const HostBytes stored = residency_.in_host_tier();
  store(page.spilled_bytes, stored.total() - memory.overflow_bytes);
  store(page.host_file_bytes, stored.file);
  store(page.outside_bytes, memory.outside_bytes);
  store(page.lane_bytes, memory.lane_bytes);
  store(page.donated_bytes, memory.donated_bytes);
  store(page.overflow_bytes, memory.overflow_bytes);
  const bool has_late_memory = !gap_reasons_.promises_iterations();
  store(page.late_bytes, has_late_memory ? residency_.to_restore_late() : Bytes{0});
  store(page.need_bytes, needed_room(memory));
  // Written after the resident bytes: a reader that sees this value sees the resident bytes of the
  // same moment.
  if (const auto device = device_memory(); device.has_value()) {
    page.device_free_bytes.store(device->free.value(), std::memory_order_release);
  }
  store(page.dropped_total_bytes, moves_.totals().dropped);
  store(page.spilled_total_bytes, moves_.totals().spilled);
  store(page.restored_total_bytes, moves_.totals().restored);
}

// The device's memory as the driver says it; empty if the answer is impossible.
std::optional<DeviceMemory> Runtime::Impl::device_memory() const {
  const auto memory = config_.device_memory ? config_.device_memory() : std::nullopt;
  const bool is_possible =
      memory.has_value() && memory->free >= Bytes{0} && memory->free <= memory->total;
  return is_possible ? memory : std::nullopt;
}

// The room that the next iteration needs. Spilled memory has to be back, whatever the last
// iterations needed. Overflow counts too, since it should have room.
Bytes Runtime::Impl::needed_room(const alloc::MemoryStats& memory) {
  const Bytes expected = counters_.expected_peak() + memory.outside_bytes;
  const Bytes resident{memory.reserved_bytes.all.current};
  return std::max(expected, resident + residency_.to_restore()) + memory.overflow_bytes;
}

// Bytes of live private memory. Where torch has an allocator of its own, its count of active blocks
// is taken. Segments that were made in the gap count as outside bytes as a whole.
Bytes Runtime::Impl::live_bytes(const alloc::MemoryStats& memory) const {
  if (router_ == nullptr) return memory.live_private_bytes;
  return std::max(router_->live() - memory.outside_bytes, Bytes{0});
}

// At a boundary, without the lock. Figures that are dear to read are read only now and then.
void Runtime::Impl::refresh_usage(wire::LeasePage& page, Nanos now) {
  if (figures_.take_refresh(now)) {
    const alloc::MemoryStats memory = allocator_.stats();
    figures_.set_outside(memory.outside_bytes);
    store(page.live_bytes, live_bytes(memory));
    store_resident(page, Bytes{memory.reserved_bytes.all.current});
    store(page.outside_bytes, memory.outside_bytes);
    store(page.overflow_bytes, memory.overflow_bytes);
  }
  store(page.need_bytes, counters_.expected_peak() + figures_.outside());
}

// Sets what share() returns. Called after each change of the link, the capacity or the limit.
void Runtime::Impl::note_share() {
  Bytes share = link_.is_attached() ? link_.capacity() : Bytes{};
  const Bytes limit = registration_.hard_limit();
  if (limit > Bytes{}) share = std::min(share, limit);
  figures_.set_share(share);
}

JobMemory Runtime::Impl::memory_figures(const alloc::MemoryStats& allocated) {
  const auto& reserved = allocated.reserved_bytes.all;
  return {.room = allocated.room,
          .resident = Bytes{reserved.current},
          .spilled = allocated.spilled_bytes,
          .live = live_bytes(allocated),
          .outside = allocated.outside_bytes,
          .lane = allocated.lane_bytes,
          .overflow = allocated.overflow_bytes,
          .donated = allocated.donated_bytes,
          .peak_backed = std::max(counters_.highest_peak(), Bytes{reserved.peak}),
          .moved = moves_.totals()};
}

JobStats Runtime::Impl::stats() {
  const alloc::MemoryStats allocated = allocator_.stats();
  JobStats stats;
  MutexLock lock(mu_);
  stats.is_managed = link_.is_managed();
  if (stats.is_managed) stats.job = link_.job();
  stats.is_registered = registration_.is_registered();
  stats.unmanaged_reason = link_.unmanaged_reason();
  const wire::LeaseWord word = page() == nullptr ? wire::LeaseWord() : wire::load(*page());
  stats.lease_state = wire::name_of(word.state());
  stats.term = word.term();
  stats.iterations = counters_.iterations();
  stats.optimizer_steps = counters_.optimizer_steps();
  stats.leases = num_leases();
  stats.reconnects = link_.num_reconnects();
  stats.interruptions = times_.num_interruptions();
  stats.num_cpus = cores_.num_bound();
  stats.busy = counters_.busy();
  stats.waited = times_.waited();
  stats.moving = times_.moving();
  stats.held = times_.held(monotonic_now());
  stats.memory = memory_figures(allocated);
  return stats;
}

bool Runtime::Impl::is_managed() {
  MutexLock lock(mu_);
  return link_.is_managed();
}

std::string Runtime::Impl::explain(Nanos timeout) {
  MutexLock lock(mu_);
  if (link_.is_unmanaged()) return link_.unmanaged_reason();
  if (link_.state() == CoordinatorLink::State::kLost) {
    return "the coordinator is gone; looking for one, or starting one";
  }
  if (!link_.is_attached()) return "this process has no coordinator";
  const std::uint64_t before = link_.num_explained();
  send(wire::Explain{.of = link_.address()});
  const Nanos deadline = monotonic_now() + timeout;
  while (link_.num_explained() == before) {
    const Nanos left = deadline - monotonic_now();
    if (left <= Nanos{0} || !link_.is_attached()) {
      return "the coordinator has not answered in " + to_string(timeout);
    }
    changed_.wait_for(mu_, left);
  }
  return link_.explanation();
}

}  // namespace gpushare::client
