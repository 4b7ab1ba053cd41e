// Memory of a CPU device: address space without access, which back() makes accessible and
// populates, and unback() gives to the kernel again. Each function does first what can fail without
// loss. unback() takes access away before the pages go; back() gives its pages back if they cannot
// all be had.
//
// In practice a call fails for lack of memory, or of mappings (vm.max_map_count), since access to a
// part of a mapping splits it. Both are kOutOfMemory. A range that is mlock()ed cannot be unbacked,
// and stays as it was.
//
// host_vmm_moves.cpp has how memory moves under its users, host_vmm_shared.cpp the memory of files.
#include "csrc/vm/host/host_vmm.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/vm/calls/mapping_calls.h"
#include "csrc/vm/calls/populate.h"
#include "csrc/vm/calls/streaming_copy.h"

namespace gpushare::vm {
namespace {

// Address space without memory, aligned to a chunk: a chunk is one huge page then.
Result<std::byte*> map_aligned(Bytes size) {
  // One chunk more than asked, to cut an aligned range out of it.
  const std::size_t length = (size + kChunkBytes).to_size();
  void* const mapped =
      ::mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    Status status = errno_status(fmt::format("reserve {} of address space", to_string(size)));
    return fail(StatusCode::kOutOfMemory, status.message());
  }
  auto* const start = static_cast<std::byte*>(mapped);
  const std::size_t chunk = kChunkBytes.to_size();
  const std::size_t before = (chunk - reinterpret_cast<std::uintptr_t>(start) % chunk) % chunk;
  const std::size_t after = chunk - before;
  if (before > 0) GS_CHECK(::munmap(start, before) == 0, "errno {}", errno);
  GS_CHECK(::munmap(start + before + size.to_size(), after) == 0, "errno {}", errno);
  return start + before;
}

}  // namespace

// Two ranges of that size: the one the caller gets, and the mirror in which restored memory is
// filled.
Result<AddressRange> HostVmm::reserve(Bytes size) {
  check_whole_chunks(nullptr, size);
  const Result<std::byte*> base = map_aligned(size);
  if (!base) return fail(base.error());
  const Result<std::byte*> mirror = map_aligned(size);
  if (!mirror) {
    GS_CHECK(::munmap(*base, size.to_size()) == 0, "errno {}", errno);
    return fail(mirror.error());
  }
  MutexLock lock(mu_);
  reservations_.emplace(*base,
                        Reservation{*mirror, size, std::make_unique<HeldWrites>(*base, size)});
  return AddressRange(this, *base, size);
}

// All pages are there when it returns. A machine that is short of memory therefore fails here, with
// a Status, and not at the first access, by the kernel's out-of-memory killer.
Status HostVmm::back(std::byte* address, Bytes size) {
  check_whole_chunks(address, size);
  // Addresses that show a slot of the host tier are mapped to its file, and have to be our own
  // again.
  if (is_shown(address, size)) GS_RETURN_IF_ERROR(hide(address, size));
  if (::mprotect(address, size.to_size(), PROT_READ | PROT_WRITE) != 0) {
    return mapping_status(describe("back", address, size));
  }
  ask_for_huge_pages(address, size);
  Status populated = populate_now(address, size);
  if (populated.ok()) return {};
  if (Status undone = unback(address, size); !undone.ok()) {
    log::error("after a failed backing: {}", undone.to_string());
  }
  return {populated.code(), fmt::format("back {}: {}", to_string(size), populated.message())};
}

Status HostVmm::unback(std::byte* address, Bytes size) {
  check_whole_chunks(address, size);
  if (is_shared(address)) return unback_shared(address, size);
  // Access is taken away first: it is what can fail, and then nothing is lost yet.
  if (::mprotect(address, size.to_size(), PROT_NONE) != 0) {
    return mapping_status(describe("unback", address, size));
  }
  // Writers that waited for the range go on once it is gone, and fault.
  if (::madvise(address, size.to_size(), MADV_DONTNEED) == 0) {
    let_go(address, size);
    return {};
  }
  Status failed = errno_status(describe("unback", address, size));  // EINVAL: locked by mlockall
  if (::mprotect(address, size.to_size(), PROT_READ | PROT_WRITE) != 0) {
    log::error("{}", errno_status(describe("give access again to", address, size)).to_string());
  }
  return failed;
}

// Both copies are of ordinary memory. They go past the processor's caches, so that they do not push
// out what the running job needs.
Status HostVmm::copy_out(const std::byte* device, std::byte* host, Bytes size) {
  streaming_copy(host, device, size.to_size());
  return {};
}

Status HostVmm::copy_in(const std::byte* host, std::byte* device, Bytes size) {
  streaming_copy(device, host, size.to_size());
  return {};
}

// The lock is held while the two ranges go, so that nobody finds a reservation that is half gone.
void HostVmm::unreserve(std::byte* base, Bytes size) {
  forget_files(base, size);
  MutexLock lock(mu_);
  const auto found = reservations_.find(base);
  GS_CHECK(::munmap(found->second.mirror, size.to_size()) == 0, "errno {}", errno);
  GS_CHECK(::munmap(base, size.to_size()) == 0, "errno {}", errno);
  shown_.remove(base, size);
  reservations_.erase(found);
}

}  // namespace gpushare::vm
