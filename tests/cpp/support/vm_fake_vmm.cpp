#include "tests/cpp/support/vm_fake_vmm.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "csrc/base/check.h"

#include "tests/cpp/support/vm_chunk.h"

namespace gpushare::testing {
namespace {

Bytes bytes_of(std::size_t num_chunks) {
  return vm::kChunkBytes * static_cast<std::int64_t>(num_chunks);
}

template <typename Body>
void for_each_chunk(std::byte* address, Bytes size, Body body) {
  for (std::size_t at = 0; at < size.to_size(); at += kChunk)
    body(address + at);
}

const std::byte* chunk_of(const void* address) {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(address) / kChunk *
                                            kChunk);
}

}  // namespace

FakeVmm::~FakeVmm() {
  MutexLock lock(mu_);
  GS_CHECK(reserved_.empty(), "{} reservations outlive their Vmm", reserved_.size());
}

Result<vm::AddressRange> FakeVmm::reserve(Bytes size) {
  MutexLock lock(mu_);
  if (must_fail()) return fail(StatusCode::kOutOfMemory, "reserve: told to fail");
  const std::size_t length = 2 * size.to_size() + kChunk;
  void* const mapped = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return fail(StatusCode::kOutOfMemory, "reserve: mmap failed");
  // The bytes cut off before and after stay mapped: a fake may waste address space.
  const auto start = reinterpret_cast<std::uintptr_t>(mapped);
  auto* const base = reinterpret_cast<std::byte*>((start + kChunk - 1) / kChunk * kChunk);
  ask_for_huge_pages(base, 2 * size.to_size());
  reserved_.emplace(base, size);
  return vm::AddressRange(this, base, size);
}

void FakeVmm::unreserve(std::byte* base, Bytes size) {
  MutexLock lock(mu_);
  reserved_.erase(base);
  for (Chunks* chunks : {&chunks_, &frozen_, &shown_, &forbidden_})
    chunks->erase(chunks->lower_bound(base), chunks->lower_bound(base + 2 * size.to_size()));
  shared_.erase(shared_.lower_bound(base), shared_.lower_bound(base + size.to_size()));
  ::munmap(base, 2 * size.to_size());
}

Status FakeVmm::add_backing(std::byte* address, Bytes size) {
  ++num_backs_;
  check_backed(address, size, false);
  if (must_fail()) return {StatusCode::kOutOfMemory, "back: told to fail"};
  if (bytes_of(chunks_.size()) + size > device_size_) {
    return {StatusCode::kOutOfMemory, "back: the device is full"};
  }
  for_each_chunk(address, size,
                 [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS { chunks_.insert(chunk); });
  most_backed_ = std::max(most_backed_, bytes_of(chunks_.size()));
  std::memset(address, 0, size.to_size());
  return {};
}

void FakeVmm::remove_backing(std::byte* address, Bytes size) {
  check_backed(address, size, true);
  for_each_chunk(address, size, [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    chunks_.erase(chunk);
    frozen_.erase(chunk);
  });
  std::memset(address, std::to_integer<int>(kPoison), size.to_size());
}

Status FakeVmm::back(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  stop_showing(address, size);
  return add_backing(address, size);
}

Status FakeVmm::unback(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  ++num_unbacks_;
  check_backed(address, size, true);
  const bool is_shared = shared_.contains(address);
  check_shared(address, size, is_shared);
  if (must_fail()) return {StatusCode::kIo, "unback: told to fail"};
  if (is_shared) {
    release_files(address, size);
    cover(address, size);
  }
  remove_backing(address, size);
  return {};
}

Status FakeVmm::freeze(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  check_backed(address, size, true);
  if (must_fail()) return {StatusCode::kOutOfMemory, "freeze: told to fail"};
  for_each_chunk(address, size, [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    GS_CHECK(frozen_.insert(chunk).second, "frozen already");
  });
  return {};
}

void FakeVmm::thaw(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  for_each_chunk(address, size, [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    GS_CHECK(frozen_.erase(chunk) == 1, "not frozen");
  });
}

Status FakeVmm::unback_showing(std::byte* address, Bytes size, const vm::HostPlace& place) {
  MutexLock lock(mu_);
  ++num_unbacks_;
  check_backed(address, size, true);
  if (must_fail()) return {StatusCode::kIo, "unback_showing: told to fail"};
  for_each_chunk(address, size, [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    GS_CHECK(frozen_.contains(chunk), "what is shown must not have changed since it was copied");
  });
  remove_backing(address, size);
  map_place(address, size, place);
  return {};
}

Status FakeVmm::show(std::byte* address, Bytes size, const vm::HostPlace& place) {
  MutexLock lock(mu_);
  check_backed(address, size, false);
  if (must_fail()) return {StatusCode::kOutOfMemory, "show: told to fail"};
  map_place(address, size, place);
  return {};
}

bool FakeVmm::shows(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  for (std::size_t at = 0; at < size.to_size(); at += kChunk) {
    if (!shown_.contains(address + at)) return false;
  }
  return true;
}

void FakeVmm::map_place(std::byte* address, Bytes size, const vm::HostPlace& place) {
  const void* const mapped = ::mmap(address, size.to_size(), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_FIXED, place.fd, place.offset);
  GS_CHECK(mapped == address, "errno {}", errno);
  for_each_chunk(address, size, [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    GS_CHECK(shown_.insert(chunk).second, "shown already");
  });
}

Status FakeVmm::hide(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  if (must_fail()) return {StatusCode::kOutOfMemory, "hide: told to fail"};
  stop_showing(address, size);
  return {};
}

void FakeVmm::stop_showing(std::byte* address, Bytes size) {
  for_each_chunk(address, size, [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    if (shown_.erase(chunk) == 0) return;
    const void* const mapped = ::mmap(chunk, kChunk, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    GS_CHECK(mapped == chunk, "errno {}", errno);
    ask_for_huge_pages(chunk, kChunk);
    std::memset(chunk, std::to_integer<int>(kPoison), kChunk);
  });
}

Status FakeVmm::back_aside(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  check_backed(address, size, false);
  GS_RETURN_IF_ERROR(add_backing(locate_aside(address), size));
  for_each_chunk(address, size, [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    GS_CHECK(frozen_.insert(chunk).second, "frozen already");
  });
  return {};
}

std::byte* FakeVmm::aside(std::byte* address) {
  MutexLock lock(mu_);
  return locate_aside(address);
}

std::byte* FakeVmm::locate_aside(std::byte* address) const {
  const auto after = reserved_.upper_bound(address);
  GS_CHECK(after != reserved_.begin());
  return address + std::prev(after)->second.to_size();
}

Status FakeVmm::bring_in(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  std::byte* const there = locate_aside(address);
  check_backed(there, size, true);
  check_backed(address, size, false);
  if (must_fail()) return {StatusCode::kOutOfMemory, "bring_in: told to fail"};
  stop_showing(address, size);
  std::memcpy(address, there, size.to_size());
  remove_backing(there, size);
  for_each_chunk(address, size, [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    chunks_.insert(chunk);
    GS_CHECK(frozen_.erase(chunk) == 1, "not frozen");
  });
  return {};
}

void FakeVmm::unback_aside(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  remove_backing(locate_aside(address), size);
  for_each_chunk(address, size, [this](std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    GS_CHECK(frozen_.erase(chunk) == 1, "not frozen");
  });
}

Status FakeVmm::copy_out(const std::byte* device, std::byte* host, Bytes size) {
  run_hook();
  {
    MutexLock lock(mu_);
    check_backed(device, size, true);
    if (must_fail()) return {StatusCode::kIo, "copy_out: told to fail"};
  }
  std::memcpy(host, device, size.to_size());
  return {};
}

Status FakeVmm::copy_in(const std::byte* host, std::byte* device, Bytes size) {
  run_hook();
  {
    MutexLock lock(mu_);
    check_backed(device, size, true);
    if (must_fail()) return {StatusCode::kIo, "copy_in: told to fail"};
  }
  std::memcpy(device, host, size.to_size());
  return {};
}

void FakeVmm::fail_at(int nth, int more) {
  MutexLock lock(mu_);
  first_failing_ = num_calls_ + nth;
  last_failing_ = first_failing_ + more;
}

void FakeVmm::set_before_copy(std::function<void()> hook) {
  MutexLock lock(mu_);
  before_copy_ = std::move(hook);
}

void FakeVmm::run_hook() {
  std::function<void()> hook;
  {
    MutexLock lock(mu_);
    hook = before_copy_;
  }
  if (hook) hook();
}

void FakeVmm::fail_never() {
  MutexLock lock(mu_);
  first_failing_ = last_failing_ = 0;
}

void FakeVmm::set_device_size(Bytes size) {
  MutexLock lock(mu_);
  device_size_ = size;
}

bool FakeVmm::must_fail() {
  ++num_calls_;
  return num_calls_ >= first_failing_ && num_calls_ <= last_failing_;
}

void FakeVmm::check_backed(const std::byte* address, Bytes size, bool expected) const {
  GS_CHECK(size > Bytes{});
  GS_CHECK(reinterpret_cast<std::uintptr_t>(address) % kChunk == 0);
  GS_CHECK(size.to_size() % kChunk == 0);
  for (std::size_t at = 0; at < size.to_size(); at += kChunk) {
    GS_CHECK(chunks_.contains(address + at) == expected, "chunk {} of the range", at / kChunk);
  }
}

int FakeVmm::num_calls() const {
  MutexLock lock(mu_);
  return num_calls_;
}

int FakeVmm::num_backs() const {
  MutexLock lock(mu_);
  return num_backs_;
}

int FakeVmm::num_unbacks() const {
  MutexLock lock(mu_);
  return num_unbacks_;
}

Bytes FakeVmm::backed() const {
  MutexLock lock(mu_);
  return bytes_of(chunks_.size());
}

Bytes FakeVmm::most_backed() const {
  MutexLock lock(mu_);
  return most_backed_;
}

Bytes FakeVmm::frozen() const {
  MutexLock lock(mu_);
  return bytes_of(frozen_.size());
}

Bytes FakeVmm::shown() const {
  MutexLock lock(mu_);
  return bytes_of(shown_.size());
}

template <typename Holds>
bool FakeVmm::all_chunks(const void* address, Bytes size, Holds holds) {
  const auto* const end = static_cast<const std::byte*>(address) + size.to_size();
  for (const std::byte* chunk = chunk_of(address); chunk < end; chunk += kChunk) {
    if (!holds(chunk)) return false;
  }
  return true;
}

bool FakeVmm::is_backed(const void* address, Bytes size) const {
  MutexLock lock(mu_);
  return all_chunks(address, size, [this](const std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    return chunks_.contains(chunk);
  });
}

bool FakeVmm::is_reachable(const void* address, Bytes size) const {
  MutexLock lock(mu_);
  return all_chunks(address, size, [this](const std::byte* chunk) GS_NO_THREAD_SAFETY_ANALYSIS {
    return chunks_.contains(chunk) || shown_.contains(chunk);
  });
}

}  // namespace gpushare::testing
