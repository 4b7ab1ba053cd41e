// Memory of the host tier that is ordinary RAM. It grows by extents of 64 MiB, each mapped wherever
// the kernel likes. A chunk is populated when it is added: if RAM is short that call fails, and no
// copy later.
//
// With a pinner, eight chunks are pinned by one call, ahead of their use, but no more than the slab
// may have and never across an extent's end. A copy may not lie in two pinned ranges, so
// end_of_copy() says where the range of a chunk ends. Chunks that could not be pinned are
// remembered as such a range too, are not tried again, and are only slower. All is kept until the
// slab goes: neither RAM nor pinning is given back in between.
#include "csrc/vm/tier/memfd_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "csrc/base/log.h"
#include "csrc/vm/calls/populate.h"
#include "csrc/vm/contract/vmm.h"

namespace gpushare::vm {
namespace {
constexpr Bytes kExtentBytes = kChunkBytes * std::int64_t{HostMemory::kExtentChunks};
constexpr std::uint32_t kChunksPerPinning = 8;  // 16 MiB: as much as is copied by one call

Bytes size_of(std::uint32_t num_chunks) { return kChunkBytes * std::int64_t{num_chunks}; }

// A memfd and not anonymous memory, so that a slot can be mapped a second time, at the addresses
// whose bytes it has.
UniqueFd make_file() { return UniqueFd(::memfd_create("gpushare-host-slab", MFD_CLOEXEC)); }

// Why the file could not grow. The kernel counts it as any file of the program.
Status why_not_longer() {
  const bool is_too_long = errno == EFBIG;
  const Status failed = errno_status("grow the host tier's memfd");
  rlimit limit{};
  if (!is_too_long || ::getrlimit(RLIMIT_FSIZE, &limit) != 0) return failed;
  return {
      failed.code(),
      fmt::format("{}: this process may have no file above {} (ulimit -f), and memory that moves "
                  "to the host counts as one. Start it without that limit",
                  failed.message(), to_string(Bytes{static_cast<std::int64_t>(limit.rlim_cur)}))};
}

}  // namespace

Result<std::unique_ptr<HostMemory>> MemfdMemory::create(HostPinner* pinner) {
  UniqueFd fd = make_file();
  if (!fd.is_valid()) return fail(errno_status("memfd_create for the host tier"));
  return std::unique_ptr<HostMemory>(new MemfdMemory(std::move(fd), pinner));
}

// The driver must let go of pinned pages before they are unmapped.
MemfdMemory::~MemfdMemory() {
  MutexLock lock(mu_);
  for (const Pinned& range : pinned_) {
    if (range.is_pinned) pinner_->unpin(locate(range.first), size_of(range.last - range.first));
  }
  for (std::byte* extent : extents_)
    ::munmap(extent, kExtentBytes.to_size());
}

// If the mapping fails the file stays longer than what is mapped; the next try sets the same
// length. If the program has closed the file, a new one has the extents from here on, at the
// offsets that they would have had. Those before stay mapped, and cannot be shown anywhere else.
Status MemfdMemory::grow() {
  if (!fd_.is_valid()) {
    fd_ = OwnFile(make_file());
    first_extent_ = extents_.size();
  }
  const auto length = static_cast<off_t>((extents_.size() + 1) * kExtentBytes.to_size());
  if (::ftruncate(fd_.get(), length) != 0) return why_not_longer();
  void* const extent =
      ::mmap(nullptr, kExtentBytes.to_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(),
             static_cast<off_t>(extents_.size() * kExtentBytes.to_size()));
  if (extent == MAP_FAILED) return errno_status("map the host tier's memfd");
  extents_.push_back(static_cast<std::byte*>(extent));
  return {};
}

// `most` bounds how far ahead is pinned.
Status MemfdMemory::add(std::uint32_t next, std::int64_t most) {
  MutexLock lock(mu_);
  if (next / kExtentChunks >= extents_.size()) GS_RETURN_IF_ERROR(grow());
  Status populated = populate_now(locate(next), kChunkBytes);
  if (!populated.ok()) return {StatusCode::kOutOfMemory, populated.message()};
  const bool is_pinned = !pinned_.empty() && pinned_.back().last > next;
  if (pinner_ != nullptr && !is_pinned) pin_from(next, most);
  return {};
}

// Pins some chunks from this one on: up to the extent's end, and no more than there may be.
void MemfdMemory::pin_from(std::uint32_t chunk, std::int64_t most) {
  const std::uint32_t to_extent_end = kExtentChunks - chunk % kExtentChunks;
  const auto count = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(most - chunk, 1, std::min(kChunksPerPinning, to_extent_end)));
  const Status pinned = pinner_->pin(locate(chunk), size_of(count));
  if (!pinned.ok() && !has_warned_) {
    log::warn("host tier in RAM: copies are slower, since {}", pinned.message());
    has_warned_ = true;
  }
  pinned_.push_back({chunk, chunk + count, pinned.ok()});
}

std::byte* MemfdMemory::locate(std::uint32_t chunk) const {
  return extents_[chunk / kExtentChunks] + chunk % kExtentChunks * kChunkBytes.to_size();
}

std::byte* MemfdMemory::address_of(std::uint32_t chunk) const {
  MutexLock lock(mu_);
  return locate(chunk);
}

// Without a pinner only the extent's end bounds a copy.
std::uint32_t MemfdMemory::end_of_copy(std::uint32_t chunk) const {
  MutexLock lock(mu_);
  const auto range =
      std::upper_bound(pinned_.begin(), pinned_.end(), chunk,
                       [](std::uint32_t which, const Pinned& each) { return which < each.last; });
  return range != pinned_.end() ? range->last : (chunk / kExtentChunks + 1) * kExtentChunks;
}

HostPlace MemfdMemory::place_of(std::uint32_t chunk) const {
  MutexLock lock(mu_);
  const bool is_in_file = chunk / kExtentChunks >= first_extent_;
  return {.fd = is_in_file ? fd_.get() : -1, .offset = std::int64_t{chunk} * kChunkBytes.value()};
}

}  // namespace gpushare::vm
