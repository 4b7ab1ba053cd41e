// Vmm on a machine without a GPU: a byte-budgeted part of RAM is the device.
//
// Reserved address space is PROT_NONE anonymous memory; backing makes chunks accessible, asks for
// huge pages and populates them at once, so that the kernel's figure for the range (smaps, Rss)
// equals the books. Memory is private: a forked child keeps its copies, and a parent that unbacks
// gives up only its own.
//
// Memory of a file is mapped over the reserved range, and the range's own memory over it again when
// it goes; which chunks are of a file is remembered, since they are given back another way.
//
// Spilled chunks show the host tier's file, mapped in place of their memory. What is restored is
// filled in a mirror, a second reservation of the same size, and moved into place with its pages.
// Both are one system call a run of chunks, between which no access can come. A kernel before 5.7
// cannot move pages and keep the mirror: there spilled chunks show nothing, and are filled in
// place.
//
// Only backed and shown chunks are accessible. So no page outside them can be populated, neither by
// a stray access nor by the kernel's huge page thread, whose unit is a chunk.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/held/held_writes.h"
#include "csrc/vm/host/shown_chunks.h"

namespace gpushare::vm {

class HostVmm final : public Vmm {
 public:
  HostVmm();
  // For tests: as on a kernel that cannot move pages.
  explicit HostVmm(bool moves_pages) : moves_pages_(moves_pages) {}
  Result<AddressRange> reserve(Bytes size) override;
  Status back(std::byte* address, Bytes size) override;
  Status unback(std::byte* address, Bytes size) override;
  Status map_shared(std::byte* address, Bytes size, int file, Bytes offset) override;
  Status unmap_shared(std::byte* address, Bytes size) override;
  Status forbid_access(std::byte* address, Bytes size) override;
  Status allow_access(std::byte* address, Bytes size) override;
  Status make_private(std::byte* address, Bytes size) override;
  Status freeze(std::byte* address, Bytes size) override;
  void thaw(std::byte* address, Bytes size) override;
  Status unback_showing(std::byte* address, Bytes size, const HostPlace& place) override;
  Status show(std::byte* address, Bytes size, const HostPlace& place) override;
  // Where pages cannot be moved under their users, spilled memory cannot be used either.
  [[nodiscard]] bool traps_writers() const override { return moves_pages_; }
  [[nodiscard]] bool shows(const std::byte* address, Bytes size) const override;
  Status hide(std::byte* address, Bytes size) override;
  Status back_aside(std::byte* address, Bytes size) override;
  [[nodiscard]] std::byte* aside(std::byte* address) override;
  Status bring_in(std::byte* address, Bytes size) override;
  void unback_aside(std::byte* address, Bytes size) override;
  Status copy_out(const std::byte* device, std::byte* host, Bytes size) override;
  Status copy_in(const std::byte* host, std::byte* device, Bytes size) override;
  [[nodiscard]] bool is_host_accessible() const override { return true; }

 private:
  // Where a chunk's bytes lie in a file.
  struct Shared {
    int file = -1;
    Bytes offset;
    ino_t inode = 0;  // of the file: the program may have closed its number and used it anew
  };

  [[nodiscard]] bool is_shared(const std::byte* address) const;
  Status unback_shared(std::byte* address, Bytes size);
  // Gives the files' parts of the range back, and forgets that they were mapped.
  Status release_files(std::byte* address, Bytes size);
  void forget_files(std::byte* address, Bytes size);

  struct Reservation {
    std::byte* mirror;
    Bytes size;
    std::unique_ptr<HeldWrites> held;
  };

  void unreserve(std::byte* base, Bytes size) override;
  [[nodiscard]] const Reservation& reservation_of(const std::byte* address) const GS_REQUIRES(mu_);
  static constexpr std::int64_t kMostRuns = 4096;  // of 65,530 mappings

  // Maps the place over the range and notes that it is shown.
  Status map_place(std::byte* address, Bytes size, const HostPlace& place) GS_EXCLUDES(mu_);
  Status protect_shown(std::byte* address, Bytes size, int protection) GS_EXCLUDES(mu_);
  void hold(const std::byte* address, Bytes size) GS_EXCLUDES(mu_);
  void let_go(const std::byte* address, Bytes size) GS_EXCLUDES(mu_);
  [[nodiscard]] bool is_shown(const std::byte* address, Bytes size) const GS_EXCLUDES(mu_);

  const bool moves_pages_;
  mutable Mutex mu_;  // held for no system call on a chunk
  std::map<const std::byte*, Reservation> reservations_ GS_GUARDED_BY(mu_);  // by base
  ShownChunks shown_ GS_GUARDED_BY(mu_);
  std::map<const std::byte*, Shared> shared_ GS_GUARDED_BY(mu_);  // by chunk
};

}  // namespace gpushare::vm
