// How allocations of the driver come under addresses and leave them, so that no failure of the
// driver loses a byte.
//
// - put(): all allocations are made, then mapped side by side, then access is allowed once for the
//   whole range. Only then the books have them. A failure undoes what was done.
// - take(): the range is unmapped by one call, which may fail and change nothing. Then the
//   allocations are released.
// - move(): they are mapped at the new addresses too, then unmapped at the old ones. In between
//   both show the same memory.
//
// An allocation that the driver does not unmap or release is of no use and cannot be forgotten
// either. It is kept in a list, and retry() offers it again at each later call. Nothing may be
// mapped where the driver has not let go, which check_let_go() asks first. The lock covers the
// books alone, and is held for no call of the driver.
#include "csrc/vm/cuda/cuda_chunks.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/vm/calls/mapping_calls.h"

namespace gpushare::vm {
namespace {

// Whether a range overlaps an allocation of one of the maps.
template <typename Entry>
bool overlaps(const std::byte* address, Bytes size, const Entry& entry) {
  return entry.first < address + size.to_size() &&
         address < entry.first + entry.second.size.to_size();
}

template <typename Allocations>
Bytes sum_of(const Allocations& allocations, std::size_t count) {
  Bytes sum;
  for (std::size_t i = 0; i < count; ++i)
    sum += allocations[i].size;
  return sum;
}

// The first allocation that ends above `address`: the one it lies in, or else the next.
template <typename ByAddress>
auto first_above(const ByAddress& pieces, const std::byte* address) {
  auto piece = pieces.upper_bound(address);
  if (piece != pieces.begin()) {
    const auto before = std::prev(piece);
    if (before->first + before->second.size.to_size() > address) piece = before;
  }
  return piece;
}

}  // namespace

// If the allocations cannot be mapped, map_all() has released them already.
Status CudaChunks::put(const std::byte* address, Bytes size) {
  GS_DCHECK(!has_any(address, size), "{} is backed already", describe("range of", address, size));
  retry();
  Allocations made;
  Status status = check_let_go(address, size);
  if (status.ok()) status = create(size, made);
  if (status.ok()) {
    status = map_all(address, size, made);
  } else {
    release(made);
  }
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}: {}", describe("back", address, size), status.message())};
}

// The handles belong to the host tier: they are mapped here, and never released.
Status CudaChunks::show(const std::byte* address, const std::vector<cuda::MemoryHandle>& handles) {
  const Bytes size = kChunkBytes * static_cast<std::int64_t>(handles.size());
  GS_DCHECK(!has_any(address, size), "{} shows something", describe("range of", address, size));
  retry();
  GS_RETURN_IF_ERROR(check_let_go(address, size));
  Allocations shown;
  shown.reserve(handles.size());
  for (const cuda::MemoryHandle handle : handles)
    shown.push_back({handle, kChunkBytes, false});
  return map_all(address, size, shown);
}

// The books have the pieces only if all of it worked, so what a caller sees is all or nothing.
Status CudaChunks::map_all(const std::byte* address, Bytes size, const Allocations& made) {
  std::size_t num_mapped = 0;
  Status status = map(address, made, num_mapped);
  if (status.ok()) status = allow_access(address, size);
  if (status.ok()) {
    remember(address, made);
  } else {
    undo(address, made, num_mapped);
  }
  return status;
}

// Mapped at both places for a moment, so that what fails can be undone without losing a byte. The
// new place has aliases at first, which are not released if they are undone. When it works the
// books move the pieces, and the aliases are what the old place is rid of.
Status CudaChunks::move(const std::byte* from, const std::byte* to, Bytes size) {
  GS_CHECK(has_whole(from, size), "{} is not backed, or not in whole pieces",
           describe("range of", from, size));
  GS_DCHECK(!has_any(to, size), "{} is backed already", describe("range of", to, size));
  retry();
  GS_RETURN_IF_ERROR(check_let_go(to, size));
  Allocations pieces = remove(from, size);
  Allocations aliases = pieces;  // not to be released if it fails
  for (Allocation& alias : aliases)
    alias.is_ours = false;
  if (Status mapped = map_all(to, size, aliases); !mapped.ok()) {
    remember(from, pieces);
    return mapped;
  }
  static_cast<void>(remove(to, size));
  remember(to, pieces);
  undo(from, aliases, aliases.size());
  return {};
}

// The driver refuses to map over a mapping, with an error that does not say so.
Status CudaChunks::check_let_go(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  for (const auto& entry : still_mapped_) {
    if (!overlaps(address, size, entry)) continue;
    return {StatusCode::kIo, "the driver has not unmapped what was there before"};
  }
  return {};
}

// As few allocations as hold the bytes, of most_piece_ each and a smaller one at the end.
Status CudaChunks::create(Bytes size, Allocations& made) const {
  for (Bytes done; done < size;) {
    const Bytes piece = std::min(most_piece_, size - done);
    cuda::MemoryHandle handle = 0;
    const cuda::Code code = device_.calls().create(&handle, piece.to_size(), &prop_, 0);
    if (code != cuda::kSuccess) {
      return device_.driver().to_status(
          code, fmt::format("create {} after {}", to_string(piece), to_string(done)));
    }
    made.push_back({handle, piece});
    done += piece;
  }
  return {};
}

// No access is possible yet. `num_mapped` says how far it came, so that a failure can be undone.
Status CudaChunks::map(const std::byte* address,
                       const Allocations& made,
                       std::size_t& num_mapped) const {
  for (; num_mapped < made.size(); ++num_mapped) {
    const Allocation& piece = made[num_mapped];
    const cuda::Code code =
        device_.calls().map(cuda::number_of(address), piece.size.to_size(), 0, piece.handle, 0);
    if (code != cuda::kSuccess) {
      return device_.driver().to_status(code, describe("map", address, piece.size));
    }
    address += piece.size.to_size();
  }
  return {};
}

// For the whole range at once. It is the slowest of these calls (docs/notes/cuda.md).
Status CudaChunks::allow_access(const std::byte* address, Bytes size) const {
  const cuda::AccessDesc access{prop_.location, cuda::kReadWrite};
  const cuda::Code code =
      device_.calls().set_access(cuda::number_of(address), size.to_size(), &access, 1);
  return device_.driver().to_status(code, "allow access");
}

// Takes away what has been mapped of `made` and releases it all. What is still mapped is kept for
// later together with its handle; the rest is released now.
void CudaChunks::undo(const std::byte* address, const Allocations& made, std::size_t num_mapped) {
  if (num_mapped > 0) {
    const Bytes mapped = sum_of(made, num_mapped);
    const cuda::Code code = device_.calls().unmap(cuda::number_of(address), mapped.to_size());
    if (code != cuda::kSuccess) {
      const std::string what = describe("undo: unmap", address, mapped);
      log::error("{}; tried again later", device_.driver().to_status(code, what).message());
      MutexLock lock(mu_);
      for (std::size_t i = 0; i < num_mapped; ++i) {
        still_mapped_.emplace(address, made[i]);
        address += made[i].size.to_size();
      }
      return release({made.begin() + static_cast<std::ptrdiff_t>(num_mapped), made.end()});
    }
  }
  release(made);
}

// One call unmaps the whole range. Its failure leaves everything mapped and in the books.
Status CudaChunks::take(const std::byte* address, Bytes size) {
  GS_CHECK(has_whole(address, size), "{} is not backed, or not in whole pieces",
           describe("range of", address, size));
  retry();
  const cuda::Code code = device_.calls().unmap(cuda::number_of(address), size.to_size());
  if (code != cuda::kSuccess) {
    return device_.driver().to_status(code, describe("unmap", address, size));
  }
  release(remove(address, size));
  return {};
}

// pre: no piece lies in the range only in part.
void CudaChunks::discard(const std::byte* address, Bytes size) {
  for (const Vmm::Piece& run : runs(address, size)) {
    const Allocations allocations = remove(run.address, run.size);
    undo(run.address, allocations, allocations.size());
  }
}

// Pieces that lie side by side make one run, so that one call of the driver unmaps them.
std::vector<Vmm::Piece> CudaChunks::runs(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  std::vector<Vmm::Piece> found;
  const auto end = pieces_.lower_bound(address + size.to_size());
  for (auto piece = pieces_.lower_bound(address); piece != end; ++piece) {
    const bool is_next =
        !found.empty() && found.back().address + found.back().size.to_size() == piece->first;
    if (!is_next) found.push_back({piece->first, Bytes{}});
    found.back().size += piece->second.size;
  }
  return found;
}

std::vector<cuda::MemoryHandle> CudaChunks::handles(const Vmm::Piece& run) const {
  MutexLock lock(mu_);
  std::vector<cuda::MemoryHandle> found;
  const auto end = pieces_.lower_bound(run.address + run.size.to_size());
  for (auto piece = pieces_.lower_bound(run.address); piece != end; ++piece)
    found.push_back(piece->second.handle);
  return found;
}

// The lists are taken out first, so that two threads do not offer the driver the same allocation.
// An allocation that is unmapped now is released with the others; what fails again goes back to its
// list.
void CudaChunks::retry() {
  ByAddress mapped;
  Allocations held;
  {
    MutexLock lock(mu_);
    if (still_mapped_.empty() && still_held_.empty()) return;
    mapped.swap(still_mapped_);
    held.swap(still_held_);
  }
  for (auto piece = mapped.begin(); piece != mapped.end();) {
    const cuda::Code code =
        device_.calls().unmap(cuda::number_of(piece->first), piece->second.size.to_size());
    if (code == cuda::kSuccess) held.push_back(piece->second);
    piece = code == cuda::kSuccess ? mapped.erase(piece) : std::next(piece);
  }
  release(held);
  MutexLock lock(mu_);
  still_mapped_.merge(mapped);
}

// Only handles that are ours: those of shown chunks belong to the host tier.
void CudaChunks::release(const Allocations& allocations) {
  for (const Allocation& each : allocations) {
    if (!each.is_ours) continue;
    const cuda::Code code = device_.calls().release(each.handle);
    if (code == cuda::kSuccess) continue;
    const std::string what = fmt::format("release {} of the device", to_string(each.size));
    log::error("{}; tried again later", device_.driver().to_status(code, what).message());
    MutexLock lock(mu_);
    still_held_.push_back(each);
  }
}

CudaChunks::Allocations CudaChunks::remove(const std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  Allocations removed;
  const auto first = pieces_.lower_bound(address);
  const auto last = pieces_.lower_bound(address + size.to_size());
  for (auto piece = first; piece != last; ++piece)
    removed.push_back(piece->second);
  pieces_.erase(first, last);
  return removed;
}

// pre: the addresses are in no piece.
void CudaChunks::remember(const std::byte* address, const Allocations& pieces) {
  MutexLock lock(mu_);
  for (const Allocation& piece : pieces) {
    pieces_.emplace(address, piece);
    address += piece.size.to_size();
  }
}

Vmm::Piece CudaChunks::piece_of(const std::byte* address) const {
  MutexLock lock(mu_);
  const auto piece = first_above(pieces_, address);
  GS_CHECK(piece != pieces_.end() && piece->first <= address, "{} is not backed",
           describe("chunk", address, kChunkBytes));
  return {piece->first, piece->second.size};
}

// Follows the pieces from the first address on; they have to meet, and to end where the range does.
bool CudaChunks::has_whole(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  const std::byte* at = address;
  const std::byte* const end = address + size.to_size();
  for (auto piece = pieces_.find(at); at < end && piece != pieces_.end() && piece->first == at;
       ++piece) {
    at += piece->second.size.to_size();
  }
  return at == end;
}

bool CudaChunks::is_empty() const {
  MutexLock lock(mu_);
  return pieces_.empty();
}

bool CudaChunks::has_any(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  const auto piece = first_above(pieces_, address);
  return piece != pieces_.end() && overlaps(address, size, *piece);
}

// Memory that the device still has for us though nobody uses it, since the driver refused to take
// it back.
Bytes CudaChunks::kept() const {
  MutexLock lock(mu_);
  Bytes sum = sum_of(still_held_, still_held_.size());
  for (const auto& [address, piece] : still_mapped_)
    sum += piece.size;
  return sum;
}

}  // namespace gpushare::vm
