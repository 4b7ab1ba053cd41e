#include "tests/cpp/support/vm_fake_slab.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "csrc/base/check.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::testing {
namespace {
constexpr std::size_t kSlotSize = vm::kChunkBytes.to_size();
constexpr std::size_t kMostSlots = 1024;  // address space; pages come with use
}  // namespace

FakeSlab::FakeSlab(Bytes budget)
    : budget_(budget), slots_(Bytes{static_cast<std::int64_t>(kMostSlots * kSlotSize)}) {}

// The next slab may get this file, and must not find bytes in it that it lost.
FakeSlab::~FakeSlab() {
  MutexLock lock(mu_);
  for (std::size_t slot = 0; slot < is_taken_.size(); ++slot) {
    if (is_taken_[slot]) fill_with_rubbish(slot);
  }
}

void FakeSlab::fill_with_rubbish(std::size_t slot) {
  std::memset(slots_.view() + slot * kSlotSize, 0xEE, kSlotSize);
}

Result<vm::SlotId> FakeSlab::take_within(const HostBytes& most) {
  MutexLock lock(mu_);
  const auto used = std::count(is_taken_.begin(), is_taken_.end(), true);
  const bool is_full = vm::kChunkBytes * (used + 1) > budget_ || most.ram < vm::kChunkBytes;
  if (must_fail() || is_full) return fail(StatusCode::kHostTierFull, "take: no slot");
  auto free = std::find(is_taken_.begin(), is_taken_.end(), false);
  if (free == is_taken_.end()) {
    GS_CHECK(is_taken_.size() < kMostSlots);
    is_taken_.push_back(false);
    free = is_taken_.end() - 1;
  }
  *free = true;
  return vm::SlotId{static_cast<std::uint32_t>(free - is_taken_.begin())};
}

void FakeSlab::give_back(vm::SlotId slot) {
  MutexLock lock(mu_);
  GS_CHECK(slot.value < is_taken_.size() && is_taken_[slot.value], "slot {}", slot.value);
  fill_with_rubbish(slot.value);
  is_taken_[slot.value] = false;
}

Status FakeSlab::write(vm::SlotId slot, const std::byte* from, Bytes size) {
  MutexLock lock(mu_);
  if (must_fail()) return {StatusCode::kIo, "write: told to fail"};
  std::memcpy(bytes_of(slot), from, size.to_size());
  return {};
}

Status FakeSlab::read(vm::SlotId slot, std::byte* to, Bytes size) {
  MutexLock lock(mu_);
  if (must_fail()) return {StatusCode::kIo, "read: told to fail"};
  std::memcpy(to, bytes_of(slot), size.to_size());
  return {};
}

std::optional<vm::HostPlace> FakeSlab::place_of(vm::SlotId slot) {
  return vm::HostPlace{slots_.fd(), static_cast<std::int64_t>(slot.value * kSlotSize)};
}

void FakeSlab::set_budgets(const HostBytes& budgets) {
  MutexLock lock(mu_);
  budget_ = budgets.ram;
}

HostBytes FakeSlab::used_by_tier() const {
  MutexLock lock(mu_);
  return {.ram = vm::kChunkBytes * std::count(is_taken_.begin(), is_taken_.end(), true),
          .file = {}};
}

void FakeSlab::fail_at(int nth) {
  MutexLock lock(mu_);
  failing_ = num_calls_ + nth;
}

void FakeSlab::fail_never() {
  MutexLock lock(mu_);
  failing_ = 0;
}

int FakeSlab::num_calls() const {
  MutexLock lock(mu_);
  return num_calls_;
}

bool FakeSlab::must_fail() { return ++num_calls_ == failing_; }

std::byte* FakeSlab::bytes_of(vm::SlotId slot) {
  GS_CHECK(slot.value < is_taken_.size() && is_taken_[slot.value], "slot {}", slot.value);
  return slots_.view() + slot.value * kSlotSize;
}

}  // namespace gpushare::testing
