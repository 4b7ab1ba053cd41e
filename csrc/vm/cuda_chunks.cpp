#include "csrc/vm/cuda_chunks.h"

#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/log.h"
#include "csrc/vm/mapping_calls.h"
#include "csrc/vm/vmm.h"

namespace gpushare::vm {
namespace {

constexpr std::size_t kChunk = kChunkBytes.to_size();

cuda::DevicePointer number_of(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

std::size_t num_chunks(Bytes size) { return size.to_size() / kChunk; }

Bytes bytes_of(std::size_t count) { return kChunkBytes * static_cast<std::int64_t>(count); }

}  // namespace

Status CudaChunks::put(std::byte* address, Bytes size) {
  GS_DCHECK(!has_any(address, size), "{} is backed already", describe("range of", address, size));
  retry();
  Handles made;
  std::size_t num_mapped = 0;
  Status status = check_let_go(address, size);
  if (status.ok()) status = create(size, made);
  if (status.ok()) status = map(address, made, num_mapped);
  if (status.ok()) status = allow_access(address, size);
  if (!status.ok()) {
    undo(address, made, num_mapped);
    return {status.code(),
            fmt::format("{}: {}", describe("back", address, size), status.message())};
  }
  MutexLock lock(mu_);
  for (std::size_t i = 0; i < made.size(); ++i)
    chunks_.emplace(address + i * kChunk, made[i]);
  return {};
}

Status CudaChunks::check_let_go(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  const auto first = still_mapped_.lower_bound(address);
  if (first == still_mapped_.end() || first->first >= address + size.to_size()) return {};
  return {StatusCode::kIo, "the driver has not unmapped what was there before"};
}

Status CudaChunks::create(Bytes size, Handles& made) const {
  made.reserve(num_chunks(size));
  while (made.size() < num_chunks(size)) {
    cuda::MemoryHandle handle = 0;
    const cuda::Code code = device_.calls().create(&handle, kChunk, &prop_, 0);
    if (code != cuda::kSuccess) {
      return device_.driver().to_status(
          code, fmt::format("create chunk {} of {}", made.size() + 1, num_chunks(size)));
    }
    made.push_back(handle);
  }
  return {};
}

Status CudaChunks::map(std::byte* address, const Handles& made, std::size_t& num_mapped) const {
  for (; num_mapped < made.size(); ++num_mapped) {
    std::byte* const chunk = address + num_mapped * kChunk;
    const cuda::Code code = device_.calls().map(number_of(chunk), kChunk, 0, made[num_mapped], 0);
    if (code != cuda::kSuccess) {
      return device_.driver().to_status(code, describe("map", chunk, kChunkBytes));
    }
  }
  return {};
}

Status CudaChunks::allow_access(std::byte* address, Bytes size) const {
  const cuda::AccessDesc access{prop_.location, cuda::kReadWrite};
  const cuda::Code code =
      device_.calls().set_access(number_of(address), size.to_size(), &access, 1);
  return device_.driver().to_status(code, "allow access");
}

void CudaChunks::undo(std::byte* address, const Handles& made, std::size_t num_mapped) {
  if (num_mapped > 0) {
    const Bytes mapped = bytes_of(num_mapped);
    const cuda::Code code = device_.calls().unmap(number_of(address), mapped.to_size());
    if (code != cuda::kSuccess) {
      const std::string what = describe("undo: unmap", address, mapped);
      log::error("{}; tried again later", device_.driver().to_status(code, what).message());
      MutexLock lock(mu_);
      for (std::size_t i = 0; i < num_mapped; ++i)
        still_mapped_.emplace(address + i * kChunk, made[i]);
      return release({made.begin() + static_cast<std::ptrdiff_t>(num_mapped), made.end()});
    }
  }
  release(made);
}

Status CudaChunks::take(std::byte* address, Bytes size) {
  GS_CHECK(has_all(address, size), "{} is not backed", describe("range of", address, size));
  retry();
  const cuda::Code code = device_.calls().unmap(number_of(address), size.to_size());
  if (code != cuda::kSuccess) {
    return device_.driver().to_status(code, describe("unmap", address, size));
  }
  release(remove(address, size));
  return {};
}

void CudaChunks::discard(std::byte* address, Bytes size) {
  std::byte* const end = address + size.to_size();
  while (address < end) {
    std::byte* last = address;
    while (last < end && has_all(last, kChunkBytes))
      last += kChunk;
    if (last > address) {
      const Handles handles =
          remove(address, bytes_of(static_cast<std::size_t>(last - address) / kChunk));
      undo(address, handles, handles.size());
    }
    address = last + kChunk;
  }
}

void CudaChunks::retry() {
  ByAddress mapped;
  Handles held;
  {
    MutexLock lock(mu_);
    if (still_mapped_.empty() && still_held_.empty()) return;
    mapped.swap(still_mapped_);
    held.swap(still_held_);
  }
  for (auto chunk = mapped.begin(); chunk != mapped.end();) {
    const cuda::Code code = device_.calls().unmap(number_of(chunk->first), kChunk);
    if (code == cuda::kSuccess) held.push_back(chunk->second);
    chunk = code == cuda::kSuccess ? mapped.erase(chunk) : std::next(chunk);
  }
  release(held);
  MutexLock lock(mu_);
  still_mapped_.merge(mapped);
}

void CudaChunks::release(const Handles& handles) {
  for (const cuda::MemoryHandle handle : handles) {
    const cuda::Code code = device_.calls().release(handle);
    if (code == cuda::kSuccess) continue;
    log::error("{}; tried again later",
               device_.driver().to_status(code, "release 2 MiB of the device").message());
    MutexLock lock(mu_);
    still_held_.push_back(handle);
  }
}

CudaChunks::Handles CudaChunks::remove(std::byte* address, Bytes size) {
  MutexLock lock(mu_);
  Handles handles;
  const auto first = chunks_.lower_bound(address);
  const auto last = chunks_.lower_bound(address + size.to_size());
  for (auto chunk = first; chunk != last; ++chunk)
    handles.push_back(chunk->second);
  chunks_.erase(first, last);
  return handles;
}

bool CudaChunks::has_all(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  const auto first = chunks_.lower_bound(address);
  const auto last = chunks_.lower_bound(address + size.to_size());
  return static_cast<std::size_t>(std::distance(first, last)) == num_chunks(size);
}

bool CudaChunks::has_any(const std::byte* address, Bytes size) const {
  MutexLock lock(mu_);
  const auto first = chunks_.lower_bound(address);
  return first != chunks_.end() && first->first < address + size.to_size();
}

Bytes CudaChunks::kept() const {
  MutexLock lock(mu_);
  return bytes_of(still_mapped_.size() + still_held_.size());
}

}  // namespace gpushare::vm
