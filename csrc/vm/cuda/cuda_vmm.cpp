// When the device is waited for, and in which order mappings change. Nothing stops a kernel, so:
//
// - Before memory is copied out or unmapped the whole device is waited for. freeze() does that once
//   for a spill and marks the chunks; unback() does not wait again for chunks that are marked.
// - Before shown memory is hidden the device is waited for as well, since kernels may still write
//   to it.
// - Before memory is mapped nothing is waited for.
//
// A restore to addresses that show something: settle_shown() waits once; back_aside() backs the
// mirror; the mover fills it; bring_in() waits again, hides what is shown and moves the pieces to
// the addresses. If the move fails, what was shown is shown again. Between hiding and moving,
// access faults.
//
// The lock covers the marks and the mirrors' list, and is held for no call of the driver. In a
// forked child and at exit the driver is not called.
#include "csrc/vm/cuda/cuda_vmm.h"

#include <cstdint>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/vm/calls/mapping_calls.h"

namespace gpushare::vm {
namespace {

cuda::AllocationProp chunk_prop(const CudaDevice& device, const CudaVmmOptions& options) {
  cuda::AllocationProp prop = device.chunk_prop();
  prop.flags.gpu_direct_rdma = options.is_gpu_direct_rdma ? 1 : 0;
  return prop;
}

Status no_lanes(const char* verb, const std::byte* address, Bytes size) {
  return {StatusCode::kFailedPrecondition,
          describe(verb, address, size) + ": jobs cannot share memory of a CUDA device in lanes"};
}

}  // namespace

CudaVmm::CudaVmm(CudaDevice& device, const CudaVmmOptions& options)
    : device_(device),
      shows_spilled_(options.shows_spilled && device.has_host_memory()),
      chunks_(device, chunk_prop(device, options), options.most_piece),
      shown_(device),
      copies_(device) {
  check_whole_chunks(nullptr, options.most_piece);
}

CudaVmm::~CudaVmm() {
  if (!device_.is_usable()) return;
  retry();
  if (chunks_.kept() == Bytes{}) return;
  log::error("{} of {} stay taken until this process ends", to_string(chunks_.kept()),
             device_.name());
}

// Offers the driver once more what it would not take back. Nearly always there is nothing.
void CudaVmm::retry() {
  if (chunks_.kept() == Bytes{} && shown_.kept() == Bytes{}) return;
  const CudaScope scope(device_);
  if (!scope.status().ok()) return;
  chunks_.retry();
  shown_.retry();
}

// Where spilled memory can be shown, the range has a mirror of the same size. A restore fills
// memory there, while the range itself still shows what is in the host tier.
Result<AddressRange> CudaVmm::reserve(Bytes size) {
  check_whole_chunks(nullptr, size);
  const Result<std::byte*> base = reserve_range(size);
  if (!base) return fail(base.error());
  if (shows_spilled_) {
    const Result<std::byte*> mirror = reserve_range(size);
    if (!mirror) {
      free_range(*base, size);
      return fail(mirror.error());
    }
    MutexLock lock(mu_);
    mirrors_.emplace(*base, Mirror{*mirror, size});
  }
  return AddressRange(this, *base, size);
}

// Without a CudaScope: address space needs no context, and must not make one.
Result<std::byte*> CudaVmm::reserve_range(Bytes size) {
  cuda::DevicePointer address = 0;
  const cuda::Code code =
      device_.calls().reserve(&address, size.to_size(), kChunkBytes.to_size(), 0, 0);
  if (code != cuda::kSuccess) {
    return fail(device_.driver().to_status(
        code, fmt::format("reserve {} of address space", to_string(size))));
  }
  auto* const base = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  check_whole_chunks(base, size);
  return base;
}

// A range with a mapping that the driver would not take away stays reserved for good: given to
// somebody else, the range would come with that mapping in it.
void CudaVmm::free_range(std::byte* base, Bytes size) {
  Status unmapped = chunks_.check_let_go(base, size);
  if (unmapped.ok()) unmapped = shown_.check_let_go(base, size);
  if (!unmapped.ok()) {
    log::error("{} stays reserved", describe("range of", base, size));
    return;
  }
  const cuda::Code code =
      device_.calls().free_address(reinterpret_cast<std::uintptr_t>(base), size.to_size());
  if (code == cuda::kSuccess) return;
  const std::string what = describe("free address space of", base, size);
  log::error("{}", device_.driver().to_status(code, what).message());
}

// All that is in range and mirror goes, whatever fails. Nothing uses it: the reservation's owner is
// gone.
void CudaVmm::unreserve(std::byte* base, Bytes size) {
  if (!device_.is_usable()) return;
  std::byte* const mirror = in_mirror(base);
  for (std::byte* const range : {base, mirror}) {
    if (chunks_.has_any(range, size) || shown_.has_any(range, size)) give_up(range, size);
  }
  retry();
  thaw(base, size);
  if (mirror != base) {
    MutexLock lock(mu_);
    mirrors_.erase(base);
  }
  // Last: the addresses are given to others at once.
  free_range(base, size);
  if (mirror != base) free_range(mirror, size);
}

Status CudaVmm::back(std::byte* address, Bytes size) {
  check_whole_chunks(address, size);
  // The addresses must show nothing any more, and the driver has to have let go of what they
  // showed.
  GS_RETURN_IF_ERROR(hide(address, size));
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  shown_.retry();
  GS_RETURN_IF_ERROR(shown_.check_let_go(address, size));
  return chunks_.put(address, size);
}

// Waits for the device unless freeze() has done so for these very chunks.
Status CudaVmm::unback(std::byte* address, Bytes size) {
  check_whole_chunks(address, size);
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  if (!is_frozen(address, size)) {
    GS_RETURN_IF_ERROR(device_.synchronize(describe("unback", address, size)));
  }
  GS_RETURN_IF_ERROR(chunks_.take(address, size));
  thaw(address, size);
  return {};
}

CudaVmm::Piece CudaVmm::piece_of(const std::byte* address) const {
  return chunks_.piece_of(address);
}

// The device is done with the chunks when this returns. Nothing keeps new kernels from writing to
// them: the caller launches none.
Status CudaVmm::freeze(std::byte* address, Bytes size) {
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  GS_RETURN_IF_ERROR(device_.synchronize(describe("freeze", address, size)));
  MutexLock lock(mu_);
  for (std::size_t at = 0; at < size.to_size(); at += kChunkBytes.to_size())
    frozen_.insert(address + at);
  return {};
}

// Takes the marks away. Kernels were never held by them.
void CudaVmm::thaw(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  frozen_.erase(frozen_.lower_bound(address), frozen_.lower_bound(address + size.to_size()));
}

// Whether all chunks of the range are marked: one that is not would have to be waited for.
bool CudaVmm::is_frozen(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  for (std::size_t at = 0; at < size.to_size(); at += kChunkBytes.to_size()) {
    if (!frozen_.contains(address + at)) return false;
  }
  return true;
}

// Showing is a convenience: if it fails the memory is spilled all the same, and access to it
// faults.
Status CudaVmm::unback_showing(std::byte* address, Bytes size, const HostPlace& place) {
  GS_RETURN_IF_ERROR(unback(address, size));
  if (!shows_spilled_) return {};
  if (const Status shown = show(address, size, place); !shown.ok()) {
    log::debug("spilled memory cannot be reached: {}", shown.message());
  }
  return {};
}

Status CudaVmm::show(std::byte* address, Bytes size, const HostPlace& place) {
  check_whole_chunks(address, size);
  if (!shows_spilled_) {
    return {
        StatusCode::kFailedPrecondition,
        describe("show", address, size) + ": this CUDA device cannot use the host tier in place"};
  }
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  chunks_.retry();
  GS_RETURN_IF_ERROR(chunks_.check_let_go(address, size));
  return shown_.show(address, size, place);
}

bool CudaVmm::shows(const std::byte* address, Bytes size) const {
  return shown_.has_all(address, size);
}

Status CudaVmm::hide(std::byte* address, Bytes size) {
  // A forked child has no access to what is shown.
  if (!device_.is_usable() || !shown_.has_any(address, size)) return {};
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  GS_RETURN_IF_ERROR(device_.synchronize(describe("hide", address, size)));
  std::vector<CudaShown::Run> hidden;
  return shown_.hide(address, size, hidden);
}

// Once for a whole restore: each wait would also wait for the copies of the pieces before.
Status CudaVmm::settle_shown() {
  if (shown_.is_empty()) return {};
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  GS_RETURN_IF_ERROR(device_.synchronize("wait for what is shown"));
  return {};
}

Status CudaVmm::back_aside(std::byte* address, Bytes size) {
  check_whole_chunks(address, size);
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  if (aside(address) == address) {
    shown_.retry();
    GS_RETURN_IF_ERROR(shown_.check_let_go(address, size));
  }
  return chunks_.put(aside(address), size);
}

// The mirror, if the address shows something, or if the mirror is in use for it already. The second
// case keeps the answer the same from back_aside() until bring_in(), which hides what is shown on
// its way.
std::byte* CudaVmm::aside(std::byte* address) {
  std::byte* const mirrored = in_mirror(address);
  const bool is_aside =
      shown_.has_any(address, kChunkBytes) || chunks_.has_any(mirrored, kChunkBytes);
  return is_aside ? mirrored : address;
}

std::byte* CudaVmm::in_mirror(std::byte* address) const {
  if (!shows_spilled_) return address;
  MutexLock lock(mu_);
  const auto after = mirrors_.upper_bound(address);
  GS_CHECK(after != mirrors_.begin(), "{} is not reserved", fmt::ptr(address));
  const auto& [base, mirror] = *std::prev(after);
  return mirror.base + (address - base);
}

// Copies have ended when copy_in() returns. Kernels may still use what is shown, so the device is
// waited for before that is hidden.
Status CudaVmm::bring_in(std::byte* address, Bytes size) {
  if (aside(address) == address) return {};
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  if (shown_.has_any(address, size)) {
    GS_RETURN_IF_ERROR(device_.synchronize(describe("bring in", address, size)));
  }
  std::vector<CudaShown::Run> hidden;
  GS_RETURN_IF_ERROR(shown_.hide(address, size, hidden));
  Status moved = put_in_place(address, size);
  if (!moved.ok()) shown_.show_again(hidden);
  return moved;
}

Status CudaVmm::put_in_place(std::byte* address, Bytes size) {
  shown_.retry();
  GS_RETURN_IF_ERROR(shown_.check_let_go(address, size));
  return chunks_.move(in_mirror(address), address, size);
}

void CudaVmm::unback_aside(std::byte* address, Bytes size) { give_up(aside(address), size); }

void CudaVmm::give_up(std::byte* address, Bytes size) {
  const CudaScope scope(device_);
  Status ready = scope.status();
  if (ready.ok()) ready = device_.synchronize(describe("give up", address, size));
  if (!ready.ok()) log::error("{}", ready.message());
  // Mappings are taken away even if waiting failed: a device that fails does nothing more with the
  // memory.
  if (!scope.status().ok()) return;
  chunks_.discard(address, size);
  shown_.discard(address, size);
}

Status CudaVmm::copy_out(const std::byte* device, std::byte* host, Bytes size) {
  return copies_.out(device, host, size);
}

Status CudaVmm::copy_in(const std::byte* host, std::byte* device, Bytes size) {
  return copies_.in(host, device, size);
}

Status CudaVmm::map_shared(std::byte* address, Bytes size, int /*file*/, Bytes /*offset*/) {
  return no_lanes("map", address, size);
}

Status CudaVmm::unmap_shared(std::byte* address, Bytes size) {
  return no_lanes("unmap", address, size);
}

Status CudaVmm::forbid_access(std::byte* address, Bytes size) {
  return no_lanes("forbid access to", address, size);
}

Status CudaVmm::allow_access(std::byte* address, Bytes size) {
  return no_lanes("allow access to", address, size);
}

Status CudaVmm::make_private(std::byte* address, Bytes size) {
  return no_lanes("make private", address, size);
}

}  // namespace gpushare::vm
