// Where spilled bytes go in a folder. take_within() looks in this order: what the caller may use at
// most, the slab's budget, a slot that was given back, a new slot at the end of the file. A new
// slot gets its disk blocks at once, and only if 64 MiB stay free for others. So a full disk is
// found before any byte leaves the device. Some file systems cannot allocate ahead; there the write
// fails instead, and says kHostTierFull as well.
//
// The file has no name, so it goes with the process, however that ends. It is open twice: past the
// kernel's page cache (O_DIRECT), and through it for what is not aligned or where the file system
// has no O_DIRECT.
#include "csrc/vm/tier/file_slab.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"

namespace gpushare::vm {
namespace {

// Left to others on the file system: a disk filled to the last byte breaks more than this job.
constexpr Bytes kLeftFree = mib(64);

off_t offset_of(SlotId slot) { return static_cast<off_t>(slot.value) * kChunkBytes.value(); }

// File systems without O_TMPFILE (overlay on older kernels, some network ones): a named file,
// unlinked at once.
Result<UniqueFd> open_unlinked(const std::string& folder) {
  std::string path = folder + "/.gpushare-host-slab-XXXXXX";
  UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd.is_valid()) return fail(errno_status(fmt::format("open a file in {}", folder)));
  if (::unlink(path.c_str()) != 0) return fail(errno_status(fmt::format("unlink {}", path)));
  return fd;
}

// Three answers mean that O_TMPFILE is not known there. Any other failure is one of the folder.
Result<UniqueFd> open_nameless(const std::string& folder) {
  UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.is_valid()) return fd;
  if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) return open_unlinked(folder);
  return fail(errno_status(fmt::format("open a file in {}", folder)));
}

// O_DIRECT wants memory, length and place to be multiples of something that depends on the file
// system. Every file system is content with this.
constexpr std::size_t kDirectBytes = 4096;

// The same file for I/O past the page cache; invalid where that cannot be had.
UniqueFd open_direct(int fd, const std::string& folder) {
  UniqueFd direct(
      ::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  alignas(kDirectBytes) std::byte nothing[kDirectBytes];
  // The file is empty: this only asks whether such a read is allowed.
  if (direct.is_valid() && ::pread(direct.get(), nothing, sizeof(nothing), 0) == 0) {
    log::debug("host tier in {}: past the page cache", folder);
    return direct;
  }
  log::info("host tier in {}: through the page cache, in RAM that host.budget does not count ({})",
            folder, errno_status("O_DIRECT").message());
  return UniqueFd();
}

// The disk is full, or a quota or `ulimit -f` is reached: to the job all three mean that the host
// tier has no place. Any other failure is one of the disk. Reads errno.
Status write_failed(const std::string& what) {
  const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  const Status failure = errno_status(what);
  return is_full ? Status(StatusCode::kHostTierFull, failure.message()) : failure;
}

}  // namespace

// The file has no name, so it is gone with the last descriptor, however the process ends.
Result<std::unique_ptr<HostSlab>> FileSlab::create(const std::string& folder, Bytes budget) {
  Result<UniqueFd> fd = open_nameless(folder);
  if (!fd) return fail(std::move(fd.error()));
  UniqueFd direct = open_direct(fd->get(), folder);
  return std::unique_ptr<HostSlab>(new FileSlab(std::move(*fd), std::move(direct), folder, budget));
}

// Under the lock: two callers must not both count on the last free space of the disk.
Status FileSlab::make_space(SlotId slot) {
  struct statvfs figures{};
  if (::fstatvfs(fd_.get(), &figures) != 0) return errno_status("statvfs of " + folder_);
  const Bytes available{static_cast<std::int64_t>(figures.f_bavail * figures.f_frsize)};
  const std::string where =
      fmt::format("host tier in {}: {} used of {}, {} free on its disk", folder_,
                  to_string(slots_.used()), to_string(slots_.budget()), to_string(available));
  if (available < kChunkBytes + kLeftFree) return {StatusCode::kHostTierFull, where};
  int rc = 0;
  do {
    rc = ::fallocate(fd_.get(), 0, offset_of(slot), kChunkBytes.value());
  } while (rc != 0 && errno == EINTR);
  // A file system that cannot allocate ahead fails at the write instead, which is handled too.
  if (rc == 0 || errno == EOPNOTSUPP) return {};
  return {StatusCode::kHostTierFull, errno_status(where).message()};
}

// A slot that was given back has its space on the disk still. A new one gets it now, so that a
// spill fails before bytes have left the device.
Result<SlotId> FileSlab::take_within(const HostBytes& most) {
  MutexLock lock(mu_);
  if (!slots_.has_room() || most.file < kChunkBytes) {
    return fail(StatusCode::kHostTierFull,
                fmt::format("host tier in {}: {}", folder_, slots_.why_full(most.file)));
  }
  if (const auto slot = slots_.reuse()) return *slot;
  if (Status made = make_space(slots_.next_new()); !made.ok()) return fail(std::move(made));
  return slots_.make_slot();
}

void FileSlab::give_back(SlotId slot) {
  MutexLock lock(mu_);
  slots_.give_back(slot);
}

std::optional<HostPlace> FileSlab::place_of(SlotId slot) {
  const int fd = fd_.get();
  if (fd < 0) return std::nullopt;
  return HostPlace{fd, offset_of(slot)};
}

// Asked anew for each part of a copy: one that ended early may go on at an address that is not
// aligned.
int FileSlab::fd_for(const std::byte* bytes, std::size_t size) const {
  const bool is_aligned = (reinterpret_cast<std::uintptr_t>(bytes) | size) % kDirectBytes == 0;
  return direct_fd_.is_valid() && is_aligned ? direct_fd_.get() : fd_.get();
}

// In as many parts as the kernel likes. Each part is written past the page cache where its address
// and length allow it.
Status FileSlab::write(SlotId slot, const std::byte* from, Bytes size) {
  GS_CHECK(size <= kChunkBytes, "size {}", size.value());
  for (std::size_t done = 0; done < size.to_size();) {
    const std::size_t left = size.to_size() - done;
    const ssize_t n = ::pwrite(fd_for(from + done, left), from + done, left,
                               offset_of(slot) + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;  // nothing was written, and no error says why
    if (n <= 0)
      return write_failed(fmt::format("host tier in {}: write {}", folder_, to_string(size)));
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Status FileSlab::read(SlotId slot, std::byte* to, Bytes size) {
  GS_CHECK(size <= kChunkBytes, "size {}", size.value());
  for (std::size_t done = 0; done < size.to_size();) {
    const std::size_t left = size.to_size() - done;
    const ssize_t n = ::pread(fd_for(to + done, left), to + done, left,
                              offset_of(slot) + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_status(fmt::format("read {} in {}", to_string(size), folder_));
    if (n == 0) return {StatusCode::kIo, fmt::format("the file in {} was cut short", folder_)};
    done += static_cast<std::size_t>(n);
  }
  return {};
}

void FileSlab::set_budgets(const HostBytes& budgets) {
  MutexLock lock(mu_);
  slots_.set_budget(budgets.file);
}

HostBytes FileSlab::used_by_tier() const {
  MutexLock lock(mu_);
  return {.ram = {}, .file = slots_.used()};
}

}  // namespace gpushare::vm
