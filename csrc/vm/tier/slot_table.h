// Which slots of a host slab are taken, within its budget. Slots given back are used again before
// new ones are made: the one after the last one taken if it is free, else the lowest. So chunks
// that are spilled one after the other lie side by side as a rule, and one mapping shows them all.
//
// The table knows nothing of where bytes lie. threads: none; the slab's lock covers it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "csrc/base/check.h"
#include "csrc/base/units.h"
#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/tier/host_slab.h"

namespace gpushare::vm {

class SlotTable {
 public:
  explicit SlotTable(Bytes budget) : budget_(budget) {}

  [[nodiscard]] bool has_room() const { return used() + kChunkBytes <= budget_; }
  // Why there is no slot where one may take `most` more.
  [[nodiscard]] std::string why_full(Bytes most) const {
    const char* const why = has_room() && most < kChunkBytes ? ", the rest is for other jobs" : "";
    return fmt::format("{} used of {}{}", to_string(used()), to_string(budget_), why);
  }
  // A slot that was given back; none: make_slot().
  std::optional<SlotId> reuse() {
    if (free_.empty()) return std::nullopt;
    auto found = free_.find(next_);
    if (found == free_.end()) found = free_.begin();
    const SlotId slot{*found};
    free_.erase(found);
    is_taken_[slot.value] = true;
    next_ = slot.value + 1;
    return slot;
  }
  // The number the next new slot will have; the slab makes sure that it exists first.
  [[nodiscard]] SlotId next_new() const { return {static_cast<std::uint32_t>(is_taken_.size())}; }
  SlotId make_slot() {
    const SlotId slot = next_new();
    is_taken_.push_back(true);
    next_ = slot.value + 1;
    return slot;
  }
  void give_back(SlotId slot) {
    check_taken(slot);
    is_taken_[slot.value] = false;
    free_.insert(slot.value);
  }
  void check_taken(SlotId slot) const {
    GS_CHECK(slot.value < is_taken_.size() && is_taken_[slot.value], "slot {}", slot.value);
  }

  void set_budget(Bytes budget) { budget_ = budget; }
  [[nodiscard]] Bytes budget() const { return budget_; }
  [[nodiscard]] Bytes used() const {
    return kChunkBytes * static_cast<std::int64_t>(is_taken_.size() - free_.size());
  }

 private:
  Bytes budget_;
  std::vector<bool> is_taken_;
  // Invariant: exactly the slots that are not taken.
  std::set<std::uint32_t> free_;
  std::uint32_t next_ = 0;  // after the slot taken last
};

}  // namespace gpushare::vm
