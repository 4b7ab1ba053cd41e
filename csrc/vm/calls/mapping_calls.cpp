// Small system calls on whole chunks, and what their failures mean. Where the process has as many
// mappings as it may, the kernel says ENOMEM, as it does without memory. A user can only act on
// that if the text names both.
#include "csrc/vm/calls/mapping_calls.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::vm {

void check_whole_chunks(const std::byte* address, Bytes size) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  GS_CHECK(number % kChunkBytes.to_size() == 0, "address {}", fmt::ptr(address));
  GS_CHECK(size > Bytes{} && size.value() % kChunkBytes.value() == 0, "size {}", size.value());
}

std::string describe(const char* verb, const std::byte* address, Bytes size) {
  return fmt::format("{} {} at {}", verb, to_string(size), fmt::ptr(address));
}

// ENOMEM of mprotect or mmap is mostly the limit on the number of mappings (vm.max_map_count): a
// call on a part of a mapping splits it.
Status mapping_status(const std::string& what) {
  const bool is_no_memory = errno == ENOMEM;
  Status status = errno_status(what);
  if (!is_no_memory) return status;
  return {StatusCode::kOutOfMemory, status.message() + " (memory, or vm.max_map_count reached)"};
}

// MAP_FIXED replaces what is there in one step, so nobody else's mmap can get the addresses
// meanwhile. MAP_NORESERVE: the addresses alone are no promise of memory.
void* map_anonymous(std::byte* address, Bytes size, int protection) {
  return ::mmap(address, size.to_size(), protection,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

// A kernel without transparent huge pages says EINVAL; small pages serve as well, only slower.
void ask_for_huge_pages(std::byte* address, Bytes size) {
  static_cast<void>(::madvise(address, size.to_size(), MADV_HUGEPAGE));
}

}  // namespace gpushare::vm
