// The host tier in a folder: one file without a name (0600, gone with the process).
//
// A new slot's blocks are allocated when it is taken, so that a full disk is met before bytes leave
// the device. Whole chunks go past the kernel's page cache (O_DIRECT) where the file system has
// that: else the bytes would stay in RAM that no budget counts. What is read and written through a
// mapping of the file is in the page cache all the same, and the kernel keeps the two the same: it
// writes dirty pages of a range out before it is read past the cache, and drops its pages when it
// is written past it. The rest goes through the cache. Nothing is ever synced: nobody reads the
// file after the process.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "csrc/base/mutex.h"
#include "csrc/base/own_file.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/vm/tier/host_slab.h"
#include "csrc/vm/tier/slot_table.h"

namespace gpushare::vm {

class FileSlab final : public HostSlab {
 public:
  static Result<std::unique_ptr<HostSlab>> create(const std::string& folder, Bytes budget);

  Result<SlotId> take_within(const HostBytes& most) override;
  void give_back(SlotId slot) override;
  Status write(SlotId slot, const std::byte* from, Bytes size) override;
  Status read(SlotId slot, std::byte* to, Bytes size) override;
  [[nodiscard]] std::size_t num_together(SlotId /*first*/, std::size_t /*most*/) override {
    return 1;
  }
  [[nodiscard]] std::optional<HostPlace> place_of(SlotId slot) override;
  [[nodiscard]] bool is_in_file(SlotId /*slot*/) const override { return true; }
  void set_budgets(const HostBytes& budgets) override;
  [[nodiscard]] HostBytes used_by_tier() const override;
  // Whether whole chunks go past the page cache.
  [[nodiscard]] bool is_direct() const { return direct_fd_.is_valid(); }

 private:
  FileSlab(UniqueFd fd, UniqueFd direct_fd, std::string folder, Bytes budget)
      : fd_(std::move(fd)),
        direct_fd_(std::move(direct_fd)),
        folder_(std::move(folder)),
        slots_(budget) {}
  Status make_space(SlotId slot) GS_REQUIRES(mu_);
  // The descriptor for `size` bytes that lie at `bytes`.
  [[nodiscard]] int fd_for(const std::byte* bytes, std::size_t size) const;

  const OwnFile fd_;
  const OwnFile direct_fd_;  // the same file with O_DIRECT; invalid: the file system has none
  const std::string folder_;
  mutable Mutex mu_;
  SlotTable slots_ GS_GUARDED_BY(mu_);
};

}  // namespace gpushare::vm
