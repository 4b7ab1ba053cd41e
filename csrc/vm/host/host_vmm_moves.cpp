// HostVmm's part in spilling and restoring: memory that leaves and comes back under its users.
//
// Spilling:
// 1. freeze() makes the pages read-only. Readers go on; writers wait (held/held_writes.h).
// 2. The mover copies the bytes to a slot of the host tier.
// 3. unback_showing() maps the slot's part of the file over the pages, and writers go on, in the
//    file.
//
// Restoring:
// 1. back_aside() populates pages in the mirror, and makes read-only what the addresses show.
// 2. The mover copies the bytes into the mirror.
// 3. bring_in() moves the pages to the addresses, and writers go on, in memory.
//
// Each third step is one system call on the whole range, so that no reader comes in between.
// Writers are registered as held before pages become read-only, and let go after that has ended: a
// fault that nobody expects would end the process. A failure leads back to what was there, or at
// worst to addresses without access.
#include <sys/mman.h>

#include <cerrno>
#include <iterator>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/vm/calls/mapping_calls.h"
#include "csrc/vm/calls/populate.h"
#include "csrc/vm/host/host_vmm.h"

namespace gpushare::vm {
namespace {

// Makes a part of the mirror what it was when it was reserved: addresses without memory.
void clear_mirror(std::byte* address, Bytes size) {
  if (map_anonymous(address, size, PROT_NONE) != MAP_FAILED) return;
  // The process can have no more mappings. The pages go all the same, and the mapping is replaced
  // when back_aside() comes here next.
  log::warn("{}", errno_status(describe("clear", address, size)).message());
  static_cast<void>(::madvise(address, size.to_size(), MADV_DONTNEED));
}

// Asked by trying, on a chunk without pages: kernels before 5.7 refuse MREMAP_DONTUNMAP.
bool can_move_pages() {
  constexpr Bytes kSize = kChunkBytes;
  void* const from = ::mmap(nullptr, kSize.to_size(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (from == MAP_FAILED) return false;
  void* const to =
      ::mremap(from, kSize.to_size(), kSize.to_size(), MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
  if (to != MAP_FAILED) ::munmap(to, kSize.to_size());
  ::munmap(from, kSize.to_size());
  return to != MAP_FAILED;
}

}  // namespace

HostVmm::HostVmm() : HostVmm(can_move_pages()) {}

const HostVmm::Reservation& HostVmm::reservation_of(const std::byte* address) const {
  const auto after = reservations_.upper_bound(address);
  GS_CHECK(after != reservations_.begin(), "{} is not reserved", fmt::ptr(address));
  return std::prev(after)->second;
}

void HostVmm::hold(const std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  reservation_of(address).held->hold(address, size);
}

void HostVmm::let_go(const std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  reservation_of(address).held->let_go(address, size);
}

bool HostVmm::is_shown(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  return shown_.has_any(address, size);
}

bool HostVmm::shows(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  return shown_.has_all(address, size);
}

// From here on a thread that writes is held in the fault handler until thaw() or let_go(). Readers
// go on.
Status HostVmm::freeze(std::byte* address, Bytes size) {
  check_whole_chunks(address, size);
  hold(address, size);
  if (::mprotect(address, size.to_size(), PROT_READ) == 0) return {};
  Status failed = mapping_status(describe("freeze", address, size));
  thaw(address, size);  // part of it may be read-only
  return failed;
}

// If access cannot be given, the writers are let go all the same; their faults are passed on then.
void HostVmm::thaw(std::byte* address, Bytes size) {
  if (::mprotect(address, size.to_size(), PROT_READ | PROT_WRITE) != 0) {
    log::error("{}", errno_status(describe("thaw", address, size)).to_string());
  }
  let_go(address, size);
}

// The mapping of the slot replaces the memory in one call, so a reader finds the bytes at every
// moment: those of the memory first, then those of the copy.
Status HostVmm::unback_showing(std::byte* address, Bytes size, const HostPlace& place) {
  check_whole_chunks(address, size);
  const Status shown = map_place(address, size, place);
  if (!shown.ok()) {
    log::debug("{}", shown.message());
    // The memory goes even where nothing can be shown. A call of mmap that failed late may have
    // left a hole, so the range is reserved anew first. unback() is for the case that this fails as
    // well.
    if (map_anonymous(address, size, PROT_NONE) == MAP_FAILED) return unback(address, size);
  }
  let_go(address, size);
  return {};
}

// For addresses without memory, so a failure leaves them without access, as before.
Status HostVmm::show(std::byte* address, Bytes size, const HostPlace& place) {
  check_whole_chunks(address, size);
  Status shown = map_place(address, size, place);
  if (shown.ok() || shown.code() == StatusCode::kFailedPrecondition) return shown;
  // A mapping that failed late has left a hole.
  if (map_anonymous(address, size, PROT_NONE) != MAP_FAILED) return shown;
  return mapping_status(describe("reserve anew", address, size));
}

Status HostVmm::map_place(std::byte* address, Bytes size, const HostPlace& place) {
  if (!moves_pages_) {
    return {StatusCode::kFailedPrecondition,
            "memory of the host tier can be used in place from Linux 5.7 on"};
  }
  {
    MutexLock lock(mu_);
    // Counted before it is mapped: two callers must not both see the last mapping that is free.
    shown_.add(address, size, place);
    if (shown_.num_runs() > kMostRuns) {
      shown_.remove(address, size);
      return {StatusCode::kOutOfMemory,
              fmt::format("{}: more than {} mappings", describe("show", address, size), kMostRuns)};
    }
  }
  const void* const mapped = ::mmap(address, size.to_size(), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_FIXED, place.fd, place.offset);
  if (mapped == address) return {};
  Status failed = mapping_status(describe("show", address, size));
  MutexLock lock(mu_);
  shown_.remove(address, size);
  return failed;
}

// Chunk by chunk, since some chunks of the range may show nothing and may even be backed.
Status HostVmm::hide(std::byte* address, Bytes size) {
  check_whole_chunks(address, size);
  for (std::size_t at = 0; at < size.to_size(); at += kChunkBytes.to_size()) {
    std::byte* const chunk = address + at;
    if (!is_shown(chunk, kChunkBytes)) continue;
    if (map_anonymous(chunk, kChunkBytes, PROT_NONE) == MAP_FAILED) {
      return mapping_status(describe("hide", chunk, kChunkBytes));
    }
    MutexLock lock(mu_);
    shown_.remove(chunk, kChunkBytes);
  }
  return {};
}

// The order: pages in the mirror first, since they are what may lack; then writers are held.
Status HostVmm::back_aside(std::byte* address, Bytes size) {
  if (!moves_pages_) return back(address, size);
  check_whole_chunks(address, size);
  std::byte* const there = aside(address);
  // The range of the mirror is mapped anew so that it is one mapping: mremap() moves no more than
  // one.
  if (map_anonymous(there, size, PROT_READ | PROT_WRITE) == MAP_FAILED) {
    return mapping_status(describe("back", address, size));
  }
  ask_for_huge_pages(there, size);
  Status backed = populate_now(there, size);
  if (backed.ok()) {
    hold(address, size);
    backed = protect_shown(address, size, PROT_READ);
    if (backed.ok()) return {};
  }
  unback_aside(address, size);
  return {backed.code(), fmt::format("back {}: {}", to_string(size), backed.message())};
}

// The mirror is as large as the range, so an address has the same offset in both.
std::byte* HostVmm::aside(std::byte* address) {
  if (!moves_pages_) return address;
  MutexLock lock(mu_);
  const auto after = reservations_.upper_bound(address);
  GS_CHECK(after != reservations_.begin(), "{} is not reserved", fmt::ptr(address));
  const auto& [base, reservation] = *std::prev(after);
  return reservation.mirror + (address - base);
}

// One mremap() puts the filled pages in the place of what is shown. A writer that is held goes on
// with the new pages.
Status HostVmm::bring_in(std::byte* address, Bytes size) {
  if (!moves_pages_) return {};
  std::byte* const there = aside(address);
  // DONTUNMAP: the mirror stays mapped. A hole there could be taken by somebody else's mmap.
  const void* const moved = ::mremap(there, size.to_size(), size.to_size(),
                                     MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, address);
  if (moved == MAP_FAILED) return mapping_status(describe("bring in", address, size));
  {
    MutexLock lock(mu_);
    shown_.remove(address, size);
  }
  let_go(address, size);
  clear_mirror(there, size);
  return {};
}

// The undo of back_aside(). What the addresses show can be written again.
void HostVmm::unback_aside(std::byte* address, Bytes size) {
  if (!moves_pages_) {
    if (Status undone = unback(address, size); !undone.ok()) log::error("{}", undone.to_string());
    return;
  }
  clear_mirror(aside(address), size);
  if (Status thawed = protect_shown(address, size, PROT_READ | PROT_WRITE); !thawed.ok()) {
    log::error("{}", thawed.to_string());
  }
  let_go(address, size);
}

// Chunks that show nothing stay without access.
Status HostVmm::protect_shown(std::byte* address, Bytes size, int protection) {
  for (std::size_t at = 0; at < size.to_size(); at += kChunkBytes.to_size()) {
    std::byte* const chunk = address + at;
    if (!is_shown(chunk, kChunkBytes)) continue;
    if (::mprotect(chunk, kChunkBytes.to_size(), protection) != 0) {
      return mapping_status(describe("protect", chunk, kChunkBytes));
    }
  }
  return {};
}

}  // namespace gpushare::vm
