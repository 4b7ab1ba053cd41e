#include "tests/fakecuda/host_memory.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace fakecuda {
namespace {

constexpr size_t kPage = 4096;

uintptr_t key(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace

CUresult HostMemory::allocate(void** address, size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *address = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (*address == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  ranges_[key(*address)] = {bytes, true};
  return CUDA_SUCCESS;
}

CUresult HostMemory::free(void* address) {
  const auto found = ranges_.find(key(address));
  if (found == ranges_.end() || !found->second.is_allocated) return CUDA_ERROR_INVALID_VALUE;
  ranges_.erase(found);
  std::free(address);
  return CUDA_SUCCESS;
}

CUresult HostMemory::add(void* address, size_t bytes) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Range wanted{key(address), bytes};
  const auto next = ranges_.lower_bound(wanted.begin);
  const bool hits_next = next != ranges_.end() && next->first < wanted.end();
  if (hits_next || find(wanted.begin)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  ranges_[wanted.begin] = {bytes, false};
  return CUDA_SUCCESS;
}

CUresult HostMemory::remove(void* address) {
  const auto found = ranges_.find(key(address));
  if (found == ranges_.end() || found->second.is_allocated) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  ranges_.erase(found);
  return CUDA_SUCCESS;
}

std::optional<Range> HostMemory::find(uintptr_t address) const {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return {};
  const auto& [begin, pinned] = *std::prev(after);
  if (address >= begin + pinned.bytes) return {};
  return Range{begin, pinned.bytes};
}

bool HostMemory::covers(Range range) const {
  uintptr_t at = range.begin;
  while (at < range.end()) {
    const std::optional<Range> pinned = find(at);
    if (!pinned) return false;
    at = pinned->end();
  }
  return true;
}

}  // namespace fakecuda
