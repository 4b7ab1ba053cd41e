#include "tests/fakecuda/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <iterator>

namespace fakecuda {
namespace {

void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

// Addresses that nobody else in the process gets, with nothing behind them.
void* map_nothing(void* at, size_t bytes, int flags) {
  return mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

bool is_whole_chunks(Range range) {
  return range.bytes != 0 && range.bytes % kGranularity == 0 && range.begin % kGranularity == 0;
}

int protection(CUmemAccess_flags access) {
  switch (access) {
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE: return PROT_READ | PROT_WRITE;
    case CU_MEM_ACCESS_FLAGS_PROT_READ: return PROT_READ;
    default: return PROT_NONE;
  }
}

// The entry whose key is the last one not after `address`.
template <typename Map>
auto entry_before(const Map& map, uintptr_t address) {
  const auto after = map.upper_bound(address);
  return after == map.begin() ? map.end() : std::prev(after);
}

}  // namespace

CUresult AddressSpace::reserve(CUdeviceptr* address,
                               size_t bytes,
                               size_t alignment,
                               CUdeviceptr hint) {
  if (bytes == 0 || bytes % kGranularity != 0) return CUDA_ERROR_INVALID_VALUE;
  if (alignment != 0 && !std::has_single_bit(alignment)) return CUDA_ERROR_INVALID_VALUE;
  const size_t step = std::max<size_t>(alignment, kGranularity);
  void* taken = map_nothing(pointer(hint), bytes + step, 0);
  if (taken == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto first = reinterpret_cast<uintptr_t>(taken);
  const uintptr_t begin = (first + step - 1) / step * step;
  if (begin > first) munmap(taken, begin - first);
  munmap(pointer(begin + bytes), first + step - begin);
  madvise(pointer(begin), bytes, MADV_DONTFORK);
  reservations_.emplace(begin, bytes);
  *address = begin;
  return CUDA_SUCCESS;
}

CUresult AddressSpace::free(Range range) {
  const auto reservation = reservations_.find(range.begin);
  if (reservation == reservations_.end() || reservation->second != range.bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto mapping = mappings_.lower_bound(range.begin);
  if (mapping != mappings_.end() && mapping->first < range.end()) return CUDA_ERROR_INVALID_VALUE;
  munmap(pointer(range.begin), range.bytes);
  reservations_.erase(reservation);
  return CUDA_SUCCESS;
}

CUresult AddressSpace::map(Range range, size_t offset, CUmemGenericAllocationHandle handle) {
  const Physical* physical = physical_.find(handle);
  if (physical == nullptr || physical->num_handles == 0) return CUDA_ERROR_INVALID_VALUE;
  if (offset != 0 || range.bytes != physical->bytes() || !is_whole_chunks(range)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto reservation = entry_before(reservations_, range.begin);
  if (reservation == reservations_.end() ||
      !Range{reservation->first, reservation->second}.contains(range)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto before = entry_before(mappings_, range.end() - 1);
  if (before != mappings_.end() && before->first + before->second.bytes > range.begin) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  void* mapped = mmap(pointer(range.begin), range.bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                      physical_.fd(), static_cast<off_t>(physical->extent.offset));
  if (mapped == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  // A forked child must neither see the memory nor keep it alive.
  madvise(mapped, range.bytes, MADV_DONTFORK);
  mappings_[range.begin] = {
      .bytes = range.bytes, .handle = handle, .is_on_host = physical->is_on_host()};
  physical_.add_mapping(handle);
  return CUDA_SUCCESS;
}

bool AddressSpace::is_row_of_mappings(Range range) const {
  uintptr_t at = range.begin;
  while (at < range.end()) {
    const auto mapping = mappings_.find(at);
    if (mapping == mappings_.end()) return false;
    at += mapping->second.bytes;
  }
  return at == range.end() && range.bytes != 0;
}

CUresult AddressSpace::unmap(Range range) {
  if (!is_row_of_mappings(range)) return CUDA_ERROR_INVALID_VALUE;
  map_nothing(pointer(range.begin), range.bytes, MAP_FIXED);
  madvise(pointer(range.begin), range.bytes, MADV_DONTFORK);
  for (auto mapping = mappings_.find(range.begin);
       mapping != mappings_.end() && mapping->first < range.end();) {
    physical_.remove_mapping(mapping->second.handle);
    mapping = mappings_.erase(mapping);
  }
  return CUDA_SUCCESS;
}

CUresult AddressSpace::set_access(Range range, const CUmemAccessDesc& wanted) {
  if (!is_row_of_mappings(range)) return CUDA_ERROR_INVALID_VALUE;
  const bool is_cpus = wanted.location.type == CU_MEM_LOCATION_TYPE_HOST ||
                       wanted.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  if (!is_cpus && wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto first = mappings_.find(range.begin);
  const auto last = mappings_.lower_bound(range.end());
  const bool is_all_on_host =
      std::all_of(first, last, [](const auto& each) { return each.second.is_on_host; });
  if (is_cpus && !is_all_on_host) return CUDA_ERROR_INVALID_VALUE;
  for (auto mapping = first; mapping != last; ++mapping) {
    Mapping& it = mapping->second;
    (is_cpus ? it.host_access : it.access) = wanted.flags;
    // Kernels run on the CPU, so the memory is as accessible as to the one that may do more.
    const int allowed = protection(it.access) | protection(it.host_access);
    if (mprotect(pointer(mapping->first), it.bytes, allowed) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

bool AddressSpace::is_reserved(uintptr_t address) const {
  const auto reservation = entry_before(reservations_, address);
  return reservation != reservations_.end() && address < reservation->first + reservation->second;
}

std::optional<std::pair<Range, Mapping>> AddressSpace::mapping_at(uintptr_t address) const {
  const auto mapping = entry_before(mappings_, address);
  if (mapping == mappings_.end() || address >= mapping->first + mapping->second.bytes) return {};
  return std::pair(Range{mapping->first, mapping->second.bytes}, mapping->second);
}

bool AddressSpace::is_accessible(Range range, bool is_write, bool by_device) const {
  uintptr_t at = range.begin;
  do {
    const auto found = mapping_at(at);
    if (!found) return false;
    const Mapping& mapping = found->second;
    const int allowed = protection(by_device ? mapping.access : mapping.host_access);
    if ((allowed & (is_write ? PROT_WRITE : PROT_READ)) == 0) return false;
    at = found->first.end();
  } while (at < range.end());
  return true;
}

}  // namespace fakecuda
