#include "csrc/vm/cuda_vmm.h"

#include <cstdint>

#include <fmt/format.h>

#include "csrc/base/log.h"
#include "csrc/vm/mapping_calls.h"

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
      chunks_(device, chunk_prop(device, options), options.most_piece),
      copies_(device) {
  check_whole_chunks(nullptr, options.most_piece);
}

CudaVmm::~CudaVmm() {
  if (chunks_.kept() == Bytes{} || !device_.is_usable()) return;
  const CudaScope scope(device_);
  if (scope.status().ok()) chunks_.retry();
  if (chunks_.kept() == Bytes{}) return;
  log::error("{} of {} stay taken until this process ends", to_string(chunks_.kept()),
             device_.name());
}

// Without a scope: it needs no context, and must not make one.
Result<AddressRange> CudaVmm::reserve(Bytes size) {
  check_whole_chunks(nullptr, size);
  cuda::DevicePointer address = 0;
  const cuda::Code code =
      device_.calls().reserve(&address, size.to_size(), kChunkBytes.to_size(), 0, 0);
  if (code != cuda::kSuccess) {
    return fail(device_.driver().to_status(
        code, fmt::format("reserve {} of address space", to_string(size))));
  }
  auto* const base = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  check_whole_chunks(base, size);
  return AddressRange(this, base, size);
}

void CudaVmm::unreserve(std::byte* base, Bytes size) {
  if (!device_.is_usable()) return;
  if (chunks_.has_any(base, size)) unback_aside(base, size);
  thaw(base, size);
  const cuda::Code code =
      device_.calls().free_address(reinterpret_cast<std::uintptr_t>(base), size.to_size());
  if (code == cuda::kSuccess) return;
  const std::string what = describe("free address space of", base, size);
  log::error("{}", device_.driver().to_status(code, what).message());
}

Status CudaVmm::back(std::byte* address, Bytes size) {
  check_whole_chunks(address, size);
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  return chunks_.put(address, size);
}

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

Status CudaVmm::freeze(std::byte* address, Bytes size) {
  const CudaScope scope(device_);
  GS_RETURN_IF_ERROR(scope.status());
  GS_RETURN_IF_ERROR(device_.synchronize(describe("freeze", address, size)));
  MutexLock lock(mu_);
  for (std::size_t at = 0; at < size.to_size(); at += kChunkBytes.to_size())
    frozen_.insert(address + at);
  return {};
}

void CudaVmm::thaw(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  frozen_.erase(frozen_.lower_bound(address), frozen_.lower_bound(address + size.to_size()));
}

bool CudaVmm::is_frozen(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  for (std::size_t at = 0; at < size.to_size(); at += kChunkBytes.to_size()) {
    if (!frozen_.contains(address + at)) return false;
  }
  return true;
}

Status CudaVmm::unback_showing(std::byte* address, Bytes size, const HostPlace& /*place*/) {
  return unback(address, size);
}

Status CudaVmm::show(std::byte* address, Bytes size, const HostPlace& /*place*/) {
  return {StatusCode::kFailedPrecondition,
          describe("show", address, size) + ": a CUDA device cannot use the host tier in place"};
}

bool CudaVmm::shows(const std::byte* /*address*/, Bytes /*size*/) const { return false; }

Status CudaVmm::hide(std::byte* /*address*/, Bytes /*size*/) { return {}; }

Status CudaVmm::back_aside(std::byte* address, Bytes size) { return back(address, size); }

std::byte* CudaVmm::aside(std::byte* address) { return address; }

// It is in place, and copies have ended when copy_in() returns.
Status CudaVmm::bring_in(std::byte* /*address*/, Bytes /*size*/) { return {}; }

void CudaVmm::unback_aside(std::byte* address, Bytes size) {
  const CudaScope scope(device_);
  Status ready = scope.status();
  if (ready.ok()) ready = device_.synchronize(describe("give up", address, size));
  if (!ready.ok()) log::error("{}", ready.message());
  // All the same: a device that fails does nothing more with it.
  if (scope.status().ok()) chunks_.discard(address, size);
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
