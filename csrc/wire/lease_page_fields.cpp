// The fields of the lease page other than the word. The coordinator writes the head once, before
// the job has the page. The job counts in the rest, and the coordinator reads that with suspicion:
// a job may write anything into its page. So sizes and times are clamped to 0 and kMaxAmount, which
// is small enough that sums of a few of them cannot overflow.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "csrc/wire/lease_page.h"
#include "csrc/wire/limits.h"

namespace gpushare::wire {
namespace {

// relaxed: the fields are counters without an order among each other; those that must belong to a
// transition are ordered by the release of its exchange and the acquire of load().
template <typename T>
T read(const std::atomic<T>& field) {
  return field.load(std::memory_order_relaxed);
}

std::int64_t clamped(const std::atomic<std::int64_t>& field) {
  return std::clamp<std::int64_t>(read(field), 0, kMaxAmount);
}

// FNV-1a: the same in every process that reads the page. It tells gangs apart and protects nothing.
std::uint64_t hash_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

Usage read_usage(const LeasePage& page) {
  Usage usage;
  // First, with acquire: what the job wrote before its last transition is then visible below.
  usage.is_in_gap = load(page).state() == LeaseState::kOpenGap;
  usage.iterations = std::min(read(page.iterations), std::uint64_t{kMaxAmount});
  usage.optimizer_steps = std::min(read(page.optimizer_steps), std::uint64_t{kMaxAmount});
  usage.gang_steps = std::min(read(page.gang_steps), std::uint64_t{kMaxAmount});
  usage.busy = Nanos{clamped(page.busy_ns)};
  usage.stall = Nanos{clamped(page.stall_ns)};
  usage.changed_at = Nanos{clamped(page.changed_ns)};
  usage.is_parked = read(page.is_parked) != 0;
  usage.is_inside = read(page.is_inside) != 0;
  usage.live = Bytes{clamped(page.live_bytes)};
  usage.need = Bytes{clamped(page.need_bytes)};
  // The bytes that are free on the device are only of use together with the resident bytes of the
  // same moment. The job says 0 before it changes the resident bytes. So if the first figure is the
  // same before and after the second was read, both are of one moment; if not, the first counts as
  // unknown. acquire, twice: each pairs with the job's release of the other figure.
  const std::int64_t device_free = page.device_free_bytes.load(std::memory_order_acquire);
  usage.resident = Bytes{
      std::clamp<std::int64_t>(page.resident_bytes.load(std::memory_order_acquire), 0, kMaxAmount)};
  if (read(page.device_free_bytes) == device_free) {
    usage.device_free = Bytes{std::clamp<std::int64_t>(device_free, 0, kMaxAmount)};
  }
  usage.spilled = Bytes{clamped(page.spilled_bytes)};
  usage.outside = Bytes{clamped(page.outside_bytes)};
  usage.lane.changes = read(page.lane_changes);
  usage.lane.mapped = Bytes{clamped(page.lane_bytes)};
  usage.lane.donated = Bytes{clamped(page.donated_bytes)};
  usage.overflow = Bytes{clamped(page.overflow_bytes)};
  usage.host_file = Bytes{clamped(page.host_file_bytes)};
  usage.late = Bytes{clamped(page.late_bytes)};
  usage.gap.usual = Nanos{clamped(page.gap_ns)};
  usage.gap.mean = Nanos{clamped(page.mean_gap_ns)};
  usage.phases.training = {Nanos{clamped(page.training_ns)}, Nanos{clamped(page.training_tail_ns)}};
  usage.phases.evaluation = {Nanos{clamped(page.evaluation_ns)},
                             Nanos{clamped(page.evaluation_tail_ns)}};
  usage.phases.is_evaluating =
      read(page.boundary_kind) == static_cast<std::uint32_t>(BoundaryKind::kForward);
  return usage;
}

void initialise(LeasePage& page, std::uint64_t epoch, const Address& of) {
  // Plain stores: nobody else has the page yet; passing its descriptor on orders them.
  page.magic = kPageMagic;
  page.version = kProtocolVersion;
  page.epoch = epoch;
  page.job = of.job.value;
  page.gang = of.gang.empty() ? 0 : hash_of(of.gang);
  page.rank = of.rank;
  page.ranks = of.ranks;
}

// The job's check of the page that it was handed. A page of another version has another layout, so
// nothing else in it would mean what it seems to.
bool is_valid(const LeasePage& page) {
  const auto is_zero = [](std::uint8_t byte) { return byte == 0; };
  return page.magic == kPageMagic && page.version == kProtocolVersion && page.job != 0 &&
         page.rank < page.ranks &&
         std::all_of(page.reserved0.begin(), page.reserved0.end(), is_zero);
}

}  // namespace gpushare::wire
