// HostVmm's memory of files: memfds that several processes map at addresses of their own, each
// while its lease is open. `shared_` remembers for each chunk which part of which file it is. That
// part is punched out of the file when the chunk is given back for good (unback, make_private), and
// stays when only this process leaves it (unmap_shared).
//
// Each function changes the mapping first, since that is what can fail; the books follow.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/vm/calls/populate.h"
#include "csrc/vm/host/host_vmm.h"

namespace gpushare::vm {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// ENOMEM of mmap over a mapping is the limit on the number of mappings, or memory for their tables.
Status map_status(const char* verb, const std::byte* address, Bytes size) {
  const bool is_no_memory = errno == ENOMEM;
  Status status =
      errno_status(fmt::format("{} {} at {}", verb, to_string(size), fmt::ptr(address)));
  if (!is_no_memory) return status;
  return {StatusCode::kOutOfMemory, status.message() + " (memory, or vm.max_map_count reached)"};
}

Status protect(const char* verb, std::byte* address, Bytes size, int protection) {
  if (::mprotect(address, size.to_size(), protection) == 0) return {};
  return map_status(verb, address, size);
}

// Address space without memory over whatever is mapped there.
Status reserve_again(const char* verb, std::byte* address, Bytes size) {
  void* const mapped = ::mmap(address, size.to_size(), PROT_NONE, kReserved | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) return map_status(verb, address, size);
  return {};
}

// 0: it is no open file.
ino_t inode_of(int file) {
  struct stat now{};
  return ::fstat(file, &now) == 0 ? now.st_ino : 0;
}

}  // namespace

// Asked for the first chunk of a range. A range is of a file as a whole or not at all.
bool HostVmm::is_shared(const std::byte* address) const {
  MutexLock lock(mu_);
  return shared_.contains(address);
}

void HostVmm::forget_files(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  shared_.erase(shared_.lower_bound(address), shared_.lower_bound(address + size.to_size()));
}

// Maps the part of the file over the reserved range. If the pages cannot be had the range is
// reserved again, so after a failure there is no access, as before.
Status HostVmm::map_shared(std::byte* address, Bytes size, int file, Bytes offset) {
  GS_CHECK(size > Bytes{} && size.value() % kChunkBytes.value() == 0, "size {}", size.value());
  GS_CHECK(!is_shared(address), "{} is mapped already", fmt::ptr(address));
  void* const mapped =
      ::mmap(address, size.to_size(), kReadWrite, MAP_SHARED | MAP_FIXED, file, offset.value());
  if (mapped == MAP_FAILED) return map_status("map", address, size);
  // A child must not write to what others use. Where huge pages for files are not allowed, small
  // ones serve as well.
  Status status;
  if (::madvise(address, size.to_size(), MADV_DONTFORK) != 0) {
    status = map_status("keep from children", address, size);
  }
  static_cast<void>(::madvise(address, size.to_size(), MADV_HUGEPAGE));
  if (status.ok()) status = populate_now(address, size);
  if (!status.ok()) {
    if (Status undone = reserve_again("unmap", address, size); !undone.ok()) {
      log::error("after a failed mapping: {}", undone.to_string());
    }
    return {status.code(), fmt::format("map {} of a lane: {}", to_string(size), status.message())};
  }
  const ino_t inode = inode_of(file);
  MutexLock lock(mu_);
  shown_.remove(address, size);
  for (std::size_t at = 0; at < size.to_size(); at += kChunkBytes.to_size()) {
    shared_[address + at] = {file, offset + Bytes{static_cast<std::int64_t>(at)}, inode};
  }
  return {};
}

// The bytes stay in the file, for the other jobs of the lane.
Status HostVmm::unmap_shared(std::byte* address, Bytes size) {
  GS_CHECK(is_shared(address), "{} is not of a file", fmt::ptr(address));
  GS_RETURN_IF_ERROR(reserve_again("unmap", address, size));
  forget_files(address, size);
  return {};
}

// The mapping stays, so that access can be allowed again without a page fault for each page. Until
// then an access of this process is a SIGSEGV.
Status HostVmm::forbid_access(std::byte* address, Bytes size) {
  GS_CHECK(is_shared(address), "{} is not of a file", fmt::ptr(address));
  return protect("forbid access to", address, size, PROT_NONE);
}

Status HostVmm::allow_access(std::byte* address, Bytes size) {
  GS_CHECK(is_shared(address), "{} is not of a file", fmt::ptr(address));
  return protect("allow access to", address, size, kReadWrite);
}

// A part that cannot be punched out stays in the file, and is forgotten here all the same: no
// address of this process leads there any more.
Status HostVmm::release_files(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  const auto first = shared_.lower_bound(address);
  const auto last = shared_.lower_bound(address + size.to_size());
  Status status;
  for (auto chunk = first; chunk != last; ++chunk) {
    const auto& [file, offset, inode] = chunk->second;
    if (inode_of(file) != inode) {
      status = {StatusCode::kIo, "the program has closed the lane's file"};
    } else if (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset.value(),
                           kChunkBytes.value()) != 0) {
      status = errno_status(fmt::format("give back {} of a lane", to_string(kChunkBytes)));
    }
  }
  shared_.erase(first, last);
  return status;
}

Status HostVmm::unback_shared(std::byte* address, Bytes size) {
  // The mapping goes first: it is what can fail, and then nothing is lost yet.
  GS_RETURN_IF_ERROR(reserve_again("unback", address, size));
  // Only a descriptor that is no memfd can make this fail, and then its owner has the memory.
  if (Status released = release_files(address, size); !released.ok()) {
    log::error("{}", released.to_string());
  }
  return {};
}

// A copy is made beside, then moved over the file's mapping by one call of mremap. Writers are held
// from before the copy until it is in place, so none of what they write is lost. After a failure
// the chunk is of the file, as before.
Status HostVmm::make_private(std::byte* address, Bytes size) {
  GS_CHECK(is_shared(address), "{} is not of a file", fmt::ptr(address));
  void* const copy =
      ::mmap(nullptr, size.to_size(), kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return map_status("make private", address, size);
  Status status = populate_now(static_cast<std::byte*>(copy), size);
  if (status.ok()) status = freeze(address, size);
  if (status.ok()) {
    std::memcpy(copy, address, size.to_size());
    void* const moved =
        ::mremap(copy, size.to_size(), size.to_size(), MREMAP_MAYMOVE | MREMAP_FIXED, address);
    if (moved == MAP_FAILED) {
      status = map_status("make private", address, size);
      thaw(address, size);
    } else {
      let_go(address, size);
    }
  }
  if (!status.ok()) {
    GS_CHECK(::munmap(copy, size.to_size()) == 0, "errno {}", errno);
    return status;
  }
  if (Status released = release_files(address, size); !released.ok()) {
    log::error("{}", released.to_string());
  }
  return {};
}

}  // namespace gpushare::vm
