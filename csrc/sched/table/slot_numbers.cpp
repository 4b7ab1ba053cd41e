// Numbers are tried in turn from the last one on, and not from the lowest, so that a number which
// was given back is used again as late as possible.
#include "csrc/sched/table/slot_numbers.h"

#include "csrc/base/check.h"
#include "csrc/wire/limits.h"

namespace gpushare::sched {

std::optional<std::uint32_t> SlotNumbers::take() {
  while (used_.size() < wire::kMaxLaneSlot) {
    const std::uint32_t slot = next_;
    next_ = (next_ + 1) % wire::kMaxLaneSlot;
    if (used_.insert(slot).second) return slot;
  }
  return std::nullopt;
}

void SlotNumbers::give_back(std::uint32_t slot) {
  GS_CHECK(used_.erase(slot) == 1, "slot {} is not in use", slot);
}

}  // namespace gpushare::sched
