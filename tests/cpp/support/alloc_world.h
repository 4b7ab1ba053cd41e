// An allocator with all that residency needs, over the fakes, and a record of what is live.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/vm/mover.h"

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/alloc_room.h"
#include "tests/cpp/support/vm_fake_slab.h"
#include "tests/cpp/support/vm_fake_vmm.h"

namespace gpushare::testing {

struct LiveBlock {
  std::byte* address = nullptr;
  Bytes size;
  std::uint64_t seed = 0;
  alloc::Route route = alloc::Route::kPrivate;
};

struct World {
  explicit World(Bytes room = Bytes{INT64_MAX}, Bytes host_budget = gib(1))
      : slab(host_budget),
        allocator(std::move(*alloc::CachingAllocator::create(vmm, {mib(256), room}))),
        residency(*allocator, slab, mover),
        source(*allocator, Bytes{}) {}

  // Allocates, fills and records; false if it was refused.
  bool take(Bytes size) {
    const Result<void*> address = allocator->allocate(size);
    if (!address) return false;
    fill(*address, size, next_seed);
    live.push_back({static_cast<std::byte*>(*address), size, next_seed++, allocator->route()});
    return true;
  }
  void give(std::size_t index) {
    allocator->free(live[index].address);
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
  }
  void mark_late(std::size_t index) {
    const auto address = reinterpret_cast<std::uintptr_t>(live[index].address);
    allocator->mark_late({&address, 1});
  }
  [[nodiscard]] bool is_backed(std::size_t index) const {
    return vmm.is_backed(live[index].address, live[index].size);
  }
  // Whether every live block can be read and has its bytes.
  [[nodiscard]] bool is_readable() const {
    return std::all_of(live.begin(), live.end(), [](const LiveBlock& block) {
      return is_filled(block.address, block.size, block.seed);
    });
  }
  // The same, and nothing is spilled.
  [[nodiscard]] bool is_intact() const {
    for (const LiveBlock& block : live) {
      const bool is_there = allocator->overflow() > Bytes{}
                                ? vmm.is_reachable(block.address, block.size)
                                : vmm.is_backed(block.address, block.size);
      if (!is_there) return false;
    }
    return is_readable();
  }

  FakeVmm vmm;
  FakeSlab slab;
  vm::Mover mover;
  std::unique_ptr<alloc::CachingAllocator> allocator;
  alloc::Residency residency;
  StockedRoom source;
  std::vector<LiveBlock> live;
  std::uint64_t next_seed = 1;
};

}  // namespace gpushare::testing
