// A host slab in a memfd that fails the calls it is told to. It has no addresses, so that copies go
// through the staging chunk, but can be mapped; and it fills slots that are given back with
// rubbish.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "csrc/base/mutex.h"
#include "csrc/base/status.h"
#include "csrc/base/units.h"
#include "csrc/vm/tier/host_slab.h"

#include "tests/cpp/support/vm_kept_file.h"

namespace gpushare::testing {

class FakeSlab final : public vm::HostSlab {
 public:
  explicit FakeSlab(Bytes budget = gib(1));
  ~FakeSlab() override;
  FakeSlab(const FakeSlab&) = delete;
  FakeSlab& operator=(const FakeSlab&) = delete;

  Result<vm::SlotId> take_within(const HostBytes& most) override;
  void give_back(vm::SlotId slot) override;
  Status write(vm::SlotId slot, const std::byte* from, Bytes size) override;
  Status read(vm::SlotId slot, std::byte* to, Bytes size) override;
  [[nodiscard]] std::size_t num_together(vm::SlotId /*first*/, std::size_t /*most*/) override {
    return 1;
  }
  [[nodiscard]] std::optional<vm::HostPlace> place_of(vm::SlotId slot) override;
  [[nodiscard]] bool is_in_file(vm::SlotId /*slot*/) const override { return false; }
  void set_budgets(const HostBytes& budgets) override;
  [[nodiscard]] HostBytes used_by_tier() const override;

  // The `nth` of the following calls of take, write and read fails (1 is the next).
  void fail_at(int nth);
  void fail_never();
  [[nodiscard]] int num_calls() const;

 private:
  bool must_fail() GS_REQUIRES(mu_);
  void fill_with_rubbish(std::size_t slot);
  std::byte* bytes_of(vm::SlotId slot) GS_REQUIRES(mu_);

  mutable Mutex mu_;
  Bytes budget_ GS_GUARDED_BY(mu_);
  const KeptFile slots_;
  std::vector<bool> is_taken_ GS_GUARDED_BY(mu_);
  int num_calls_ GS_GUARDED_BY(mu_) = 0, failing_ GS_GUARDED_BY(mu_) = 0;
};

}  // namespace gpushare::testing
