// The caching allocator without torch: a pair of allocate and free, and a mix of live sizes.
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/base/check.h"
#include "csrc/vm/host/host_vmm.h"

namespace gpushare {
namespace {

std::unique_ptr<alloc::CachingAllocator> make_allocator(vm::Vmm& vmm) {
  auto made = alloc::CachingAllocator::create(vmm, {});
  GS_CHECK(made.has_value(), "{}", made.error().to_string());
  return std::move(*made);
}

void pair_of(benchmark::State& state) {
  vm::HostVmm vmm;
  const auto allocator = make_allocator(vmm);
  const Bytes size{state.range(0)};
  for (auto _ : state) {
    void* block = allocator->allocate(size).value_or(nullptr);
    benchmark::DoNotOptimize(block);
    allocator->free(block);
  }
}
BENCHMARK(pair_of)->Arg(64)->Arg(4 << 10)->Arg(4 << 20);

// Frees and allocates in turn among many live blocks of training-like sizes.
void mixed_live_blocks(benchmark::State& state) {
  constexpr std::array<std::int64_t, 7> kSizes{64, 512, 4096, 65536, 1 << 20, 3 << 20, 8 << 20};
  vm::HostVmm vmm;
  const auto allocator = make_allocator(vmm);
  std::vector<void*> live(static_cast<std::size_t>(state.range(0)), nullptr);
  std::size_t step = 0;
  for (auto _ : state) {
    void*& slot = live[(step * 7919) % live.size()];
    if (slot != nullptr) allocator->free(slot);
    slot = allocator->allocate(Bytes{kSizes.at(step % kSizes.size())}).value_or(nullptr);
    benchmark::DoNotOptimize(slot);
    ++step;
  }
  for (void* block : live) {
    if (block != nullptr) allocator->free(block);
  }
}
BENCHMARK(mixed_live_blocks)->Arg(200);

}  // namespace
}  // namespace gpushare

BENCHMARK_MAIN();
