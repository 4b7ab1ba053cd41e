// Memory of a slab in a memfd: mapped, grown by extents.
//
// Mapped rather than written with pwrite, which took 1.7 times as long for 2 MiB. Pages are
// populated when a chunk is added, so that lack of memory is met before bytes leave the device. A
// forked child shares the mapping, but never looks at it: shared pages are not copied.
//
// With a pinner chunks are pinned some at a time, and stay so: pinning takes longer than the copy.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/base/own_file.h"
#include "csrc/base/unique_fd.h"
#include "csrc/vm/contract/host_memory.h"
#include "csrc/vm/contract/host_pinner.h"

namespace gpushare::vm {

class MemfdMemory final : public HostMemory {
 public:
  // `pinner`, if not null, must outlive it.
  static Result<std::unique_ptr<HostMemory>> create(HostPinner* pinner);
  ~MemfdMemory() override;
  MemfdMemory(const MemfdMemory&) = delete;
  MemfdMemory& operator=(const MemfdMemory&) = delete;

  Status add(std::uint32_t next, std::int64_t most) override;
  [[nodiscard]] std::byte* address_of(std::uint32_t chunk) const override;
  [[nodiscard]] std::uint32_t end_of_copy(std::uint32_t chunk) const override;
  [[nodiscard]] HostPlace place_of(std::uint32_t chunk) const override;

 private:
  // Neighbouring chunks that were pinned by one call, or could not be.
  struct Pinned {
    std::uint32_t first;
    std::uint32_t last;  // one after it
    bool is_pinned;
  };

  MemfdMemory(UniqueFd fd, HostPinner* pinner) : pinner_(pinner), fd_(std::move(fd)) {}
  Status grow() GS_REQUIRES(mu_);
  void pin_from(std::uint32_t chunk, std::int64_t most) GS_REQUIRES(mu_);
  [[nodiscard]] std::byte* locate(std::uint32_t chunk) const GS_REQUIRES(mu_);

  HostPinner* const pinner_;
  mutable Mutex mu_;
  OwnFile fd_ GS_GUARDED_BY(mu_);
  std::size_t first_extent_ GS_GUARDED_BY(mu_) = 0;  // that fd_ has: the program closed it before
  std::vector<std::byte*> extents_ GS_GUARDED_BY(mu_);
  bool has_warned_ GS_GUARDED_BY(mu_) = false;
  std::vector<Pinned> pinned_ GS_GUARDED_BY(mu_);  // by chunk, without gaps
};

}  // namespace gpushare::vm
