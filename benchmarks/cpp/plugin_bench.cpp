// What the segment plugin costs a request for a segment, beyond the driver's calls: the runtime's
// and the device's memory calls do nearly nothing here, and are called through import slots.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <benchmark/benchmark.h>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/allocator/segment_store.h"
#include "csrc/base/check.h"
#include "csrc/plugin/segment_plugin.h"

#include "tests/cpp/support/plugin_library.h"

namespace gpushare {
namespace {

// Reserves address space; all else does nothing and succeeds.
class NothingVmm final : public vm::Vmm {
 public:
  Result<vm::AddressRange> reserve(Bytes size) override {
    void* const base = ::mmap(nullptr, (size + vm::kChunkBytes).to_size(), PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return fail(errno_status("reserve " + to_string(size)));
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    const std::uintptr_t chunk = vm::kChunkBytes.to_size();
    auto* const aligned = reinterpret_cast<std::byte*>((address + chunk - 1) / chunk * chunk);
    return vm::AddressRange(this, aligned, size);
  }
  Status back(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  Status unback(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  Status map_shared(std::byte* /*address*/, Bytes /*size*/, int /*file*/, Bytes /*at*/) override {
    return {};
  }
  Status unmap_shared(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  Status forbid_access(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  Status allow_access(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  Status make_private(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  Status freeze(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  void thaw(std::byte* /*address*/, Bytes /*size*/) override {}
  Status unback_showing(std::byte* /*address*/,
                        Bytes /*size*/,
                        const vm::HostPlace& /*place*/) override {
    return {};
  }
  Status show(std::byte* /*address*/, Bytes /*size*/, const vm::HostPlace& /*place*/) override {
    return {};
  }
  [[nodiscard]] bool shows(const std::byte* /*address*/, Bytes /*size*/) const override {
    return false;
  }
  Status hide(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  Status back_aside(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  [[nodiscard]] std::byte* aside(std::byte* address) override { return address; }
  Status bring_in(std::byte* /*address*/, Bytes /*size*/) override { return {}; }
  void unback_aside(std::byte* /*address*/, Bytes /*size*/) override {}
  Status copy_out(const std::byte* /*device*/, std::byte* /*host*/, Bytes /*size*/) override {
    return {};
  }
  Status copy_in(const std::byte* /*host*/, std::byte* /*device*/, Bytes /*size*/) override {
    return {};
  }

 private:
  // Ends with the process.
  void unreserve(std::byte* /*base*/, Bytes /*size*/) override {}
};

constexpr std::size_t kSegment = std::size_t{2} << 20;

struct Store {
  NothingVmm vmm;
  Result<std::unique_ptr<alloc::CachingAllocator>> allocator =
      alloc::CachingAllocator::create(vmm, {.address_space = gib(16)});
  alloc::SegmentStore store{**allocator};
};

// One iteration is two requests: for a segment, and to take it back.
void pair_through_the_slots(benchmark::State& state, bool is_bypassed) {
  const testing::PluginLibrary torch("gs_importer_now");
  Store world;
  const Status installed = plugin::install_segment_plugin(
      {.store = &world.store,
       .passthrough_all = is_bypassed,
       .libraries = {.allocator = "libgs_importer_now.so", .runtime = "libgs_fake_cudart.so"}});
  GS_CHECK(installed.ok(), "{}", installed.to_string());
  const auto malloc = torch.function<int (*)(void**, std::size_t)>("importer_malloc");
  const auto free = torch.function<int (*)(void*)>("importer_free");
  for (auto _ : state) {
    void* segment = nullptr;
    GS_CHECK(malloc(&segment, kSegment) == 0);
    benchmark::DoNotOptimize(segment);
    GS_CHECK(free(segment) == 0);
  }
  GS_CHECK(plugin::plugin_counts().taken == (is_bypassed ? 0 : state.iterations()));
  const Status uninstalled = plugin::uninstall_segment_plugin();
  GS_CHECK(uninstalled.ok(), "{}", uninstalled.to_string());
}

void through_the_plugin(benchmark::State& state) { pair_through_the_slots(state, false); }
BENCHMARK(through_the_plugin);

// The store's part of it.
void from_the_store(benchmark::State& state) {
  Store world;
  for (auto _ : state) {
    void* segment = world.store.take(mib(2)).value_or(nullptr);
    benchmark::DoNotOptimize(segment);
    GS_CHECK(world.store.give_back(segment));
  }
}
BENCHMARK(from_the_store);

// What is not ours: the slots, and the fake runtime's malloc().
void forwarded(benchmark::State& state) { pair_through_the_slots(state, true); }
BENCHMARK(forwarded);

}  // namespace
}  // namespace gpushare

BENCHMARK_MAIN();
