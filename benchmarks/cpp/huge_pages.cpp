#include "benchmarks/cpp/huge_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "csrc/base/check.h"

namespace gpushare::benchmarks {
namespace {
constexpr std::size_t kHugePage = std::size_t{2} << 20;
}  // namespace

HugePages::HugePages(Bytes size) : length_(size.to_size() + kHugePage) {
  mapped_ = ::mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  GS_CHECK(mapped_ != MAP_FAILED, "errno {}", errno);
  auto* const start = static_cast<std::byte*>(mapped_);
  data_ = start + (kHugePage - reinterpret_cast<std::uintptr_t>(start) % kHugePage) % kHugePage;
  static_cast<void>(::madvise(data_, size.to_size(), MADV_HUGEPAGE));
  GS_CHECK(::madvise(data_, size.to_size(), MADV_POPULATE_WRITE) == 0, "errno {}", errno);
}

HugePages::~HugePages() { ::munmap(mapped_, length_); }

}  // namespace gpushare::benchmarks
