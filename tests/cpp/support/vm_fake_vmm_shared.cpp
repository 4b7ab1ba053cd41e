// FakeVmm's memory of files, as csrc/vm/host/host_vmm_shared.cpp has it.
#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "csrc/base/check.h"

#include "tests/cpp/support/vm_chunk.h"
#include "tests/cpp/support/vm_fake_vmm.h"

namespace gpushare::testing {
Status FakeVmm::map_shared(std::byte* address, Bytes size, int file, Bytes offset) {
  MutexLock lock(mu_);
  check_backed(address, size, false);
  if (must_fail()) return {StatusCode::kOutOfMemory, "map_shared: told to fail"};
  void* const mapped = ::mmap(address, size.to_size(), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, offset.value());
  GS_CHECK(mapped != MAP_FAILED, "errno {}", errno);
  for (std::size_t at = 0; at < size.to_size(); at += kChunk) {
    chunks_.insert(address + at);
    shared_[address + at] = {file, offset + Bytes{static_cast<std::int64_t>(at)}};
  }
  return {};
}

Status FakeVmm::unmap_shared(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  check_backed(address, size, true);
  check_shared(address, size, true);
  if (must_fail()) return {StatusCode::kIo, "unmap_shared: told to fail"};
  for (std::size_t at = 0; at < size.to_size(); at += kChunk)
    chunks_.erase(address + at);
  cover(address, size);
  return {};
}

Status FakeVmm::make_private(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  check_backed(address, size, true);
  check_shared(address, size, true);
  GS_CHECK(!forbidden_.contains(address), "what cannot be read cannot be copied");
  if (must_fail()) return {StatusCode::kOutOfMemory, "make_private: told to fail"};
  const std::vector<std::byte> copy(address, address + size.to_size());
  release_files(address, size);
  cover(address, size);
  std::memcpy(address, copy.data(), copy.size());
  return {};
}

Status FakeVmm::forbid_access(std::byte* address, Bytes size) {
  return set_access(address, size, false);
}

Status FakeVmm::allow_access(std::byte* address, Bytes size) {
  return set_access(address, size, true);
}

Status FakeVmm::set_access(std::byte* address, Bytes size, bool is_allowed) {
  MutexLock lock(mu_);
  check_shared(address, size, true);
  if (must_fail()) return {StatusCode::kOutOfMemory, "access: told to fail"};
  const int protection = is_allowed ? PROT_READ | PROT_WRITE : PROT_NONE;
  GS_CHECK(::mprotect(address, size.to_size(), protection) == 0, "errno {}", errno);
  for (std::size_t at = 0; at < size.to_size(); at += kChunk) {
    if (is_allowed) {
      forbidden_.erase(address + at);
    } else {
      forbidden_.insert(address + at);
    }
  }
  return {};
}

void FakeVmm::cover(std::byte* address, Bytes size) {
  void* const mapped = ::mmap(address, size.to_size(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  GS_CHECK(mapped != MAP_FAILED, "errno {}", errno);
  ask_for_huge_pages(address, size.to_size());
  std::memset(address, std::to_integer<int>(kPoison), size.to_size());
  shared_.erase(shared_.lower_bound(address), shared_.lower_bound(address + size.to_size()));
  forbidden_.erase(forbidden_.lower_bound(address),
                   forbidden_.lower_bound(address + size.to_size()));
}

void FakeVmm::release_files(const std::byte* address, Bytes size) {
  for (std::size_t at = 0; at < size.to_size(); at += kChunk) {
    const Shared& part = shared_.at(address + at);
    GS_CHECK(::fallocate(part.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, part.offset.value(),
                         vm::kChunkBytes.value()) == 0);
  }
}

void FakeVmm::check_shared(const std::byte* address, Bytes size, bool expected) const {
  for (std::size_t at = 0; at < size.to_size(); at += kChunk) {
    GS_CHECK(shared_.contains(address + at) == expected, "chunk {} of the range", at / kChunk);
  }
}

Bytes FakeVmm::shared() const {
  MutexLock lock(mu_);
  return vm::kChunkBytes * static_cast<std::int64_t>(shared_.size());
}

Bytes FakeVmm::forbidden() const {
  MutexLock lock(mu_);
  return vm::kChunkBytes * static_cast<std::int64_t>(forbidden_.size());
}

}  // namespace gpushare::testing
