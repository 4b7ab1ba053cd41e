#include "benchmarks/cpp/spill_world.h"

#include <sys/mman.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/clock.h"

namespace gpushare::benchmarks {
namespace {

constexpr Bytes kBlock = mib(64);
constexpr std::size_t kWordsPerPage = 4096 / sizeof(std::uint64_t);
constexpr std::size_t kHugePage = std::size_t{2} << 20;

Bytes resident_in(const std::pair<std::byte*, Bytes>& range) {
  const auto low = reinterpret_cast<std::uintptr_t>(range.first);
  const std::uintptr_t high = low + range.second.to_size();
  Bytes resident;
  bool is_inside = false;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    std::int64_t kibibytes = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &first, &last) == 2) {
      is_inside = first < high && last > low;
    } else if (is_inside && std::sscanf(line.c_str(), "Rss: %" SCNd64 " kB", &kibibytes) == 1) {
      resident += kib(kibibytes);
    }
  }
  return resident;
}

template <typename Made>
Made value_of(Result<Made> made) {
  GS_CHECK(made.has_value(), "{}", made.error().to_string());
  return std::move(*made);
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
  const Bytes before = resident_in(allocator_->reserved_range());
  const Nanos begun = monotonic_now();
  const alloc::ReleaseOutcome outcome = residency_.release(size_, true);
  const double seconds = seconds_since(begun);
  GS_CHECK(outcome.spilled == size_, "spilled {}: {}", to_string(outcome.spilled), outcome.reason);
  const Bytes after = resident_in(allocator_->reserved_range());
  GS_CHECK(before - after == size_, "resident {}, then {}", to_string(before), to_string(after));
  return seconds;
}

double SpillWorld::restore() {
  allocator_->raise_room(size_);
  const Nanos begun = monotonic_now();
  const Status status = residency_.restore();
  const double seconds = seconds_since(begun);
  GS_CHECK(status.ok(), "{}", status.to_string());
  GS_CHECK(residency_.to_restore() == Bytes{}, "{} are left", to_string(residency_.to_restore()));
  return seconds;
}

void SpillWorld::check_contents() const {
  for (std::size_t number = 0; number < blocks_.size(); ++number) {
    for (std::size_t i = 0; i < kBlock.to_size() / sizeof(std::uint64_t); i += kWordsPerPage) {
      GS_CHECK(blocks_[number][i] == number * kBlock.to_size() + i, "block {} word {}", number, i);
    }
  }
}

HugePages::HugePages(Bytes size) : length_(size.to_size() + kHugePage) {
  mapped_ = ::mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  GS_CHECK(mapped_ != MAP_FAILED, "errno {}", errno);
  auto* const start = static_cast<std::byte*>(mapped_);
  data_ = start + (kHugePage - reinterpret_cast<std::uintptr_t>(start) % kHugePage) % kHugePage;
  static_cast<void>(::madvise(data_, size.to_size(), MADV_HUGEPAGE));
  GS_CHECK(::madvise(data_, size.to_size(), MADV_POPULATE_WRITE) == 0, "errno {}", errno);
}

HugePages::~HugePages() { ::munmap(mapped_, length_); }

double seconds_since(Nanos begun) { return to_seconds(monotonic_now() - begun); }

}  // namespace gpushare::benchmarks
