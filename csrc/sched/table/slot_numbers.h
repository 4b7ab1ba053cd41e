// The slot numbers of one user on a device: which are in use, over the pools of all lanes together.
//
// A number is an offset in the user's one file (lane_pool.h), so no two pools may have the same.
// One that was given back is used again after all others: a job that has it mapped would else take
// it for one that still has memory.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace gpushare::sched {

class SlotNumbers {
 public:
  // One that is not in use; nothing: all are.
  std::optional<std::uint32_t> take();
  // pre: it is in use.
  void give_back(std::uint32_t slot);

  [[nodiscard]] const std::set<std::uint32_t>& used() const { return used_; }

 private:
  std::set<std::uint32_t> used_;  // Invariant: what all pools have and their members keep.
  std::uint32_t next_ = 0;        // number to try
};

}  // namespace gpushare::sched
