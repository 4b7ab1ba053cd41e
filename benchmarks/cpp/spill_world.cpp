#include "benchmarks/cpp/spill_world.h"

#include <ctime>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/clock.h"

#include "tests/cpp/support/vm_smaps.h"

namespace gpushare::benchmarks {
namespace {

constexpr Bytes kBlock = mib(64);
constexpr std::size_t kWordsPerPage = 4096 / sizeof(std::uint64_t);

template <typename Made>
Made value_of(Result<Made> made) {
  GS_CHECK(made.has_value(), "{}", made.error().to_string());
  return std::move(*made);
}

// Of all threads of this process.
double cpu_seconds_since(std::clock_t begun) {
  return static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
}

}  // namespace

SpillWorld::SpillWorld(Bytes size, const std::string& folder)
    : size_(size),
      slab_(value_of(vm::make_host_slab(folder, size))),
      allocator_(value_of(alloc::CachingAllocator::create(vmm_, {.initial_room = size}))),
      residency_(*allocator_, *slab_, mover_) {
  GS_CHECK(size > Bytes{} && size.value() % kBlock.value() == 0, "size {}", size.value());
  for (std::int64_t at = 0; at < size.value(); at += kBlock.value()) {
    auto* const block = static_cast<std::uint64_t*>(value_of(allocator_->allocate(kBlock)));
    for (std::size_t i = 0; i < kBlock.to_size() / sizeof(std::uint64_t); ++i)
      block[i] = static_cast<std::uint64_t>(at) + i;
    blocks_.push_back(block);
  }
  allocator_->set_route(alloc::Route::kOutside);
  spill();
  restore();
}

double SpillWorld::spill() {
  const Bytes before = resident();
  const std::clock_t cpu_begun = std::clock();
  const Nanos begun = monotonic_now();
  const alloc::ReleaseOutcome outcome = residency_.release(size_, true);
  const double seconds = seconds_since(begun);
  cpu_seconds_ = cpu_seconds_since(cpu_begun);
  GS_CHECK(outcome.spilled == size_, "spilled {}: {}", to_string(outcome.spilled), outcome.reason);
  const Bytes after = resident();
  GS_CHECK(before - after == size_, "resident {}, then {}", to_string(before), to_string(after));
  return seconds;
}

double SpillWorld::restore() {
  allocator_->raise_room(size_);
  const std::clock_t cpu_begun = std::clock();
  const Nanos begun = monotonic_now();
  const Status status = residency_.restore();
  const double seconds = seconds_since(begun);
  cpu_seconds_ = cpu_seconds_since(cpu_begun);
  GS_CHECK(status.ok(), "{}", status.to_string());
  GS_CHECK(residency_.to_restore() == Bytes{}, "{} are left", to_string(residency_.to_restore()));
  return seconds;
}

Bytes SpillWorld::resident() const {
  const auto [base, size] = allocator_->reserved_range();
  return testing::kernel_figures_of(base, size).rss;
}

void SpillWorld::check_contents() const {
  for (std::size_t number = 0; number < blocks_.size(); ++number) {
    for (std::size_t i = 0; i < kBlock.to_size() / sizeof(std::uint64_t); i += kWordsPerPage) {
      GS_CHECK(blocks_[number][i] == number * kBlock.to_size() + i, "block {} word {}", number, i);
    }
  }
}

double seconds_since(Nanos begun) { return to_seconds(monotonic_now() - begun); }

}  // namespace gpushare::benchmarks
