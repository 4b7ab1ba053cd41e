#include "csrc/vm/ram_slab.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/vm/populate.h"
#include "csrc/vm/streaming_copy.h"

namespace gpushare::vm {
namespace {
constexpr std::size_t kSlotsPerExtent = 32;  // 64 MiB of address space at a time
constexpr Bytes kExtentBytes = kChunkBytes * static_cast<std::int64_t>(kSlotsPerExtent);
constexpr std::uint32_t kSlotsPerPinning = 8;  // 16 MiB: as much as is copied by one call

Bytes size_of(std::uint32_t num_slots) { return kChunkBytes * std::int64_t{num_slots}; }

}  // namespace

Result<std::unique_ptr<HostSlab>> RamSlab::create(Bytes budget, HostPinner* pinner) {
  UniqueFd fd(::memfd_create("gpushare-host-slab", MFD_CLOEXEC));
  if (!fd.is_valid()) return fail(errno_status("memfd_create for the host tier"));
  return std::unique_ptr<HostSlab>(new RamSlab(std::move(fd), budget, pinner));
}

RamSlab::~RamSlab() {
  MutexLock lock(mu_);
  for (const Pinned& range : pinned_) {
    if (range.is_pinned) pinner_->unpin(locate({range.first}), size_of(range.last - range.first));
  }
  for (std::byte* extent : extents_)
    ::munmap(extent, kExtentBytes.to_size());
}

Status RamSlab::grow() {
  const auto length = static_cast<off_t>((extents_.size() + 1) * kExtentBytes.to_size());
  if (::ftruncate(fd_.get(), length) != 0) return errno_status("grow the host tier's memfd");
  void* const extent =
      ::mmap(nullptr, kExtentBytes.to_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(),
             static_cast<off_t>(extents_.size() * kExtentBytes.to_size()));
  if (extent == MAP_FAILED) return errno_status("map the host tier's memfd");
  extents_.push_back(static_cast<std::byte*>(extent));
  return {};
}

Result<SlotId> RamSlab::take_within(const HostBytes& most) {
  MutexLock lock(mu_);
  if (!slots_.has_room() || most.ram < kChunkBytes) {
    return fail(StatusCode::kHostTierFull, "host tier in RAM: " + slots_.why_full(most.ram));
  }
  if (const auto slot = slots_.reuse()) return *slot;
  const SlotId slot = slots_.next_new();
  if (slot.value / kSlotsPerExtent >= extents_.size()) {
    if (Status grown = grow(); !grown.ok()) return fail(std::move(grown));
  }
  if (Status populated = populate_now(locate(slot), kChunkBytes); !populated.ok()) {
    return fail(StatusCode::kHostTierFull,
                fmt::format("host tier in RAM, {} used of {}: {}", to_string(slots_.used()),
                            to_string(slots_.budget()), populated.message()));
  }
  if (pinner_ != nullptr && (pinned_.empty() || pinned_.back().last <= slot.value)) pin_from(slot);
  return slots_.make_slot();
}

// Up to the extent's end, and no more than the budget has place for.
void RamSlab::pin_from(SlotId slot) {
  const auto to_extent_end =
      static_cast<std::uint32_t>(kSlotsPerExtent - slot.value % kSlotsPerExtent);
  const std::int64_t in_budget = slots_.budget() / kChunkBytes - slot.value;
  const auto count = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(in_budget, 1, std::min(kSlotsPerPinning, to_extent_end)));
  const Status pinned = pinner_->pin(locate(slot), size_of(count));
  if (!pinned.ok() && !has_warned_) {
    log::warn("host tier in RAM: copies are slower, since {}", pinned.message());
    has_warned_ = true;
  }
  pinned_.push_back({slot.value, slot.value + count, pinned.ok()});
}

void RamSlab::give_back(SlotId slot) {
  MutexLock lock(mu_);
  slots_.give_back(slot);
}

std::byte* RamSlab::locate(SlotId slot) const {
  return extents_[slot.value / kSlotsPerExtent] +
         slot.value % kSlotsPerExtent * kChunkBytes.to_size();
}

std::byte* RamSlab::address_of(SlotId slot) {
  MutexLock lock(mu_);
  slots_.check_taken(slot);
  return locate(slot);
}

std::size_t RamSlab::num_together(SlotId first, std::size_t most) {
  MutexLock lock(mu_);
  std::size_t last = (first.value / kSlotsPerExtent + 1) * kSlotsPerExtent;
  const auto range = std::upper_bound(
      pinned_.begin(), pinned_.end(), first.value,
      [](std::uint32_t slot, const Pinned& candidate) { return slot < candidate.last; });
  if (range != pinned_.end()) last = range->last;
  return std::min(most, last - first.value);
}

std::optional<HostPlace> RamSlab::place_of(SlotId slot) {
  return HostPlace{fd_.get(), static_cast<std::int64_t>(slot.value) * kChunkBytes.value()};
}

Status RamSlab::write(SlotId slot, const std::byte* from, Bytes size) {
  GS_CHECK(size <= kChunkBytes, "size {}", size.value());
  streaming_copy(address_of(slot), from, size.to_size());
  return {};
}

Status RamSlab::read(SlotId slot, std::byte* to, Bytes size) {
  GS_CHECK(size <= kChunkBytes, "size {}", size.value());
  streaming_copy(to, address_of(slot), size.to_size());
  return {};
}

void RamSlab::set_budgets(const HostBytes& budgets) {
  MutexLock lock(mu_);
  slots_.set_budget(budgets.ram);
}

HostBytes RamSlab::used_by_tier() const {
  MutexLock lock(mu_);
  return {.ram = slots_.used(), .file = {}};
}

}  // namespace gpushare::vm
