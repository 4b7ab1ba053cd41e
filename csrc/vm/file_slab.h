// The host tier in a folder: one file without a name (0600, gone with the process).
//
// A new slot's blocks are allocated when it is taken, so that a full disk is met before bytes leave
// the device. Writes go through the kernel's page cache and are never synced: nobody reads the
// file after the process.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/vm/host_slab.h"
#include "csrc/vm/slot_table.h"

namespace gpushare::vm {

class FileSlab final : public HostSlab {
 public:
  static Result<std::unique_ptr<HostSlab>> create(const std::string& folder, Bytes budget);

  Result<SlotId> take() override;
  void give_back(SlotId slot) override;
  Status write(SlotId slot, const std::byte* from, Bytes size) override;
  Status read(SlotId slot, std::byte* to, Bytes size) override;
  [[nodiscard]] std::optional<HostPlace> place_of(SlotId slot) override;
  void set_budget(Bytes budget) override;
  [[nodiscard]] Bytes used() const override;

 private:
  FileSlab(UniqueFd fd, std::string folder, Bytes budget)
      : fd_(std::move(fd)), folder_(std::move(folder)), slots_(budget) {}
  Status make_space(SlotId slot) GS_REQUIRES(mu_);

  const UniqueFd fd_;
  const std::string folder_;
  mutable Mutex mu_;
  SlotTable slots_ GS_GUARDED_BY(mu_);
};

}  // namespace gpushare::vm
