#include "tests/cpp/support/vm_fake_cuda_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "csrc/base/check.h"

#include "tests/cpp/support/vm_chunk.h"
#include "tests/cpp/support/vm_fake_vmm.h"

namespace gpushare::testing {
namespace {

void map_over(void* address, std::size_t size, int flags, int fd, std::size_t offset) {
  const void* const mapped =
      ::mmap(address, size, PROT_NONE, flags | MAP_FIXED, fd, static_cast<off_t>(offset));
  GS_CHECK(mapped == address, "errno {}", errno);
}

}  // namespace

FakeCudaMemory::FakeCudaMemory(Bytes size) : size_(size), file_(size + kHostSize) {
  for (std::size_t offset = 0; offset < (size + kHostSize).to_size(); offset += kChunk)
    free_of(offset < size.to_size() ? Side::kDevice : Side::kHost).insert(offset);
}

FakeCudaMemory::~FakeCudaMemory() {
  for (const auto& [size, base] : given_back_)
    ::munmap(base, size);
}

std::byte* FakeCudaMemory::reserve(std::size_t size, std::size_t alignment) {
  GS_CHECK(size > 0 && size % kChunk == 0, "size {}", size);
  if (const auto again = given_back_.find(size); again != given_back_.end()) {
    std::byte* const base = again->second;
    given_back_.erase(again);
    reserved_.emplace(base, size);
    return base;
  }
  void* const start = ::mmap(nullptr, size + alignment, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  // What is cut off stays mapped: a fake may waste address space.
  const auto number = reinterpret_cast<std::uintptr_t>(start);
  auto* const base = reinterpret_cast<std::byte*>((number + alignment - 1) / alignment * alignment);
  reserved_.emplace(base, size);
  return base;
}

void FakeCudaMemory::free_address(const std::byte* base, std::size_t size) {
  const auto found = reserved_.find(base);
  GS_CHECK(found != reserved_.end() && found->second == size, "not reserved as such");
  const auto mapping = mapped_.lower_bound(base);
  GS_CHECK(mapping == mapped_.end() || mapping->first >= base + size, "something is mapped there");
  reserved_.erase(found);
  given_back_.emplace(size, const_cast<std::byte*>(base));
}

std::optional<vm::cuda::MemoryHandle> FakeCudaMemory::create(std::size_t size, Side side) {
  GS_CHECK(size > 0 && size % kChunk == 0, "size {}", size);
  std::set<std::size_t>& free = free_of(side);
  if (free.size() < size / kChunk) return std::nullopt;
  Piece piece;
  piece.side = side;
  while (piece.offsets.size() < size / kChunk) {
    const std::size_t offset = *free.begin();
    free.erase(free.begin());
    std::memset(file_.view() + offset, std::to_integer<int>(kPoison), kChunk);
    piece.offsets.push_back(offset);
  }
  pieces_.emplace(++last_handle_, std::move(piece));
  return last_handle_;
}

void FakeCudaMemory::release(vm::cuda::MemoryHandle handle) {
  const auto found = pieces_.find(handle);
  GS_CHECK(found != pieces_.end() && found->second.is_held, "handle {} is not held", handle);
  found->second.is_held = false;
  forget_unused(handle);
}

void FakeCudaMemory::map(std::byte* address, std::size_t size, vm::cuda::MemoryHandle handle) {
  check_reserved(address, size);
  const auto piece = pieces_.find(handle);
  GS_CHECK(piece != pieces_.end() && piece->second.is_held, "handle {} is not held", handle);
  const std::vector<std::size_t>& offsets = piece->second.offsets;
  GS_CHECK(size == offsets.size() * kChunk, "{} bytes of a piece of {} chunks", size,
           offsets.size());
  GS_CHECK(reinterpret_cast<std::uintptr_t>(address) % kChunk == 0);
  ++piece->second.num_mappings;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    std::byte* const chunk = address + i * kChunk;
    const bool is_new = mapped_.emplace(chunk, Mapping{.handle = handle, .first = address}).second;
    GS_CHECK(is_new, "something is mapped there");
    map_over(chunk, kChunk, MAP_SHARED, file_.fd(), offsets[i]);
  }
}

void FakeCudaMemory::unmap(std::byte* address, std::size_t size) {
  GS_CHECK(size > 0 && size % kChunk == 0, "part of a mapping: {} bytes", size);
  for (std::size_t at = 0; at < size; at += kChunk) {
    const auto found = mapped_.find(address + at);
    GS_CHECK(found != mapped_.end(), "chunk {} of the range is not mapped", at / kChunk);
    const auto [handle, first, has_access] = found->second;
    const std::byte* const end = first + pieces_.at(handle).offsets.size() * kChunk;
    GS_CHECK(first >= address && end <= address + size, "part of a mapping");
    mapped_.erase(found);
    if (address + at + kChunk != end) continue;
    --pieces_.at(handle).num_mappings;
    forget_unused(handle);
  }
  map_over(address, size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

void FakeCudaMemory::allow_access(std::byte* address, std::size_t size, Side to) {
  for (std::size_t at = 0; at < size; at += kChunk) {
    const auto found = mapped_.find(address + at);
    GS_CHECK(found != mapped_.end(), "chunk {} of the range is not mapped", at / kChunk);
    GS_CHECK(to == Side::kDevice || pieces_.at(found->second.handle).side == Side::kHost,
             "the CPU has no access to the device's memory");
    if (to == Side::kDevice) found->second.has_access = true;
  }
  GS_CHECK(::mprotect(address, size, PROT_READ | PROT_WRITE) == 0, "errno {}", errno);
  map_pages(address, size);
}

bool FakeCudaMemory::is_accessible(const std::byte* address, std::size_t size) const {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto* chunk = reinterpret_cast<const std::byte*>(number / kChunk * kChunk);
  for (; chunk < address + size; chunk += kChunk) {
    const auto found = mapped_.find(chunk);
    if (found == mapped_.end() || !found->second.has_access) return false;
  }
  return true;
}

Bytes FakeCudaMemory::used(Side side) const {
  std::size_t num_chunks = 0;
  for (const auto& [handle, piece] : pieces_)
    if (piece.side == side) num_chunks += piece.offsets.size();
  return vm::kChunkBytes * static_cast<std::int64_t>(num_chunks);
}

std::size_t FakeCudaMemory::num_handles() const {
  return static_cast<std::size_t>(std::count_if(
      pieces_.begin(), pieces_.end(), [](const auto& piece) { return piece.second.is_held; }));
}

// Memory lives as long as a handle or a mapping of it.
void FakeCudaMemory::forget_unused(vm::cuda::MemoryHandle handle) {
  const auto found = pieces_.find(handle);
  if (found->second.is_held || found->second.num_mappings > 0) return;
  free_of(found->second.side).insert(found->second.offsets.begin(), found->second.offsets.end());
  pieces_.erase(found);
}

void FakeCudaMemory::check_reserved(const std::byte* address, std::size_t size) const {
  const auto after = reserved_.upper_bound(address);
  GS_CHECK(after != reserved_.begin(), "not reserved");
  const auto& [base, length] = *std::prev(after);
  GS_CHECK(address + size <= base + length, "beyond what is reserved");
}

}  // namespace gpushare::testing
