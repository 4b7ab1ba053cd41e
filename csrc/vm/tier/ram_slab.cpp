// Which RAM the slots lie in is settled by the first chunk. If the pinner makes memory of its own,
// that is tried first, since the device can use it in place. If its first chunk cannot be had, the
// slab uses a memfd from then on. After the first chunk a failure means that RAM is full. To the
// caller each failure is kHostTierFull, and it may go on with a file (tiered_slab.h).
//
// The lock covers the table and which memory is in use. It is not held while bytes are copied: a
// slot that is taken is its owner's alone.
#include "csrc/vm/tier/ram_slab.h"

#include <algorithm>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/vm/calls/streaming_copy.h"
#include "csrc/vm/tier/memfd_memory.h"

namespace gpushare::vm {

Result<std::unique_ptr<HostSlab>> RamSlab::create(Bytes budget, HostPinner* pinner) {
  Result<std::unique_ptr<HostMemory>> ordinary = MemfdMemory::create(pinner);
  if (!ordinary) return fail(std::move(ordinary.error()));
  std::unique_ptr<HostMemory> made = pinner != nullptr ? pinner->make_memory() : nullptr;
  return std::unique_ptr<HostSlab>(new RamSlab(std::move(made), *std::move(ordinary), budget));
}

// A slot that was given back comes first, since memory is under it already. Only then the memory
// grows.
Result<SlotId> RamSlab::take_within(const HostBytes& most) {
  MutexLock lock(mu_);
  if (!slots_.has_room() || most.ram < kChunkBytes) {
    return fail(StatusCode::kHostTierFull, "host tier in RAM: " + slots_.why_full(most.ram));
  }
  if (const auto slot = slots_.reuse()) return *slot;
  if (const Status added = add(slots_.next_new().value); !added.ok()) {
    return fail(StatusCode::kHostTierFull,
                fmt::format("host tier in RAM, {} used of {}: {}", to_string(slots_.used()),
                            to_string(slots_.budget()), added.message()));
  }
  return slots_.make_slot();
}

// The pinner's memory is given up only for the first chunk: no slot lies in it yet.
Status RamSlab::add(std::uint32_t chunk) {
  const std::int64_t most = slots_.budget() / kChunkBytes;
  Status added = memory().add(chunk, most);
  if (added.ok() || made_ == nullptr || chunk > 0) return added;
  log::info("spilled memory cannot be reached by the device: {}", added.message());
  made_.reset();
  return memory().add(chunk, most);
}

void RamSlab::give_back(SlotId slot) {
  MutexLock lock(mu_);
  slots_.give_back(slot);
}

std::byte* RamSlab::address_of(SlotId slot) {
  MutexLock lock(mu_);
  slots_.check_taken(slot);
  return memory().address_of(slot.value);
}

std::size_t RamSlab::num_together(SlotId first, std::size_t most) {
  MutexLock lock(mu_);
  return std::min<std::size_t>(most, memory().end_of_copy(first.value) - first.value);
}

// Where the bytes lie in the memory that the pinner has made; for a memfd, in its file.
std::optional<HostPlace> RamSlab::place_of(SlotId slot) {
  MutexLock lock(mu_);
  const HostPlace place = memory().place_of(slot.value);
  // Of no file and not the driver's: the program has closed the file (memfd_memory.cpp).
  if (place.fd < 0 && place.memory == nullptr) return std::nullopt;
  return place;
}

// Past the processor's caches: spilled bytes are not looked at soon, and would push out what the
// running job needs.
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
