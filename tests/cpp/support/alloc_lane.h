// Jobs of one lane, each with an allocator of its own, over one file; and the least of a
// coordinator that keeps the pool's slots.
#pragma once

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/alloc/residency/lane_chunks.h"

#include "tests/cpp/support/alloc_world.h"
#include "tests/cpp/support/lane_file.h"

namespace gpushare::testing {

struct LaneJob {
  explicit LaneJob(Bytes room) : world(room), lane(*world.allocator) {
    world.allocator->set_route(alloc::Route::kOutside);
  }
  World world;
  alloc::LaneChunks lane;
};

// Keeps the pool as csrc/sched does, in the simplest way.
class Lane {
 public:
  static constexpr std::uint32_t kSlots = 64;

  // Slots that others donated are replaced while there are any.
  Status open(LaneJob& job, const alloc::Ends& ends = {}) {
    while (slots_.size() < job.lane.size() && has_free())
      slots_.push_back(take_free());
    const Status status = job.lane.open(file_.fd(), slots_, ends);
    if (status.ok()) job.world.allocator->set_route(alloc::Route::kPrivate);
    return status;
  }
  alloc::LaneChange close(LaneJob& job,
                          const alloc::LaneChunks::CloseOptions& options = {.may_promote = true}) {
    job.world.allocator->set_route(alloc::Route::kOutside);
    alloc::LaneChange change = job.lane.close(options);
    for (const std::uint32_t slot : change.donated) {
      EXPECT_EQ(std::erase(slots_, slot), 1U);
      owned_.push_back(slot);
    }
    for (const std::uint32_t slot : change.returned) {
      EXPECT_EQ(std::erase(owned_, slot), 1U);
      free_.push_back(slot);
    }
    return change;
  }
  // The pool loses its last slot.
  void shrink() {
    if (slots_.empty()) return;
    free_.push_back(slots_.back());
    slots_.pop_back();
  }

  [[nodiscard]] const LaneFile& file() const { return file_; }
  [[nodiscard]] std::size_t size() const { return slots_.size(); }
  [[nodiscard]] std::size_t num_owned() const { return owned_.size(); }

 private:
  [[nodiscard]] bool has_free() const { return !free_.empty() || next_ < kSlots; }
  std::uint32_t take_free() {
    if (free_.empty()) return next_++;
    const std::uint32_t slot = free_.front();
    free_.erase(free_.begin());
    return slot;
  }

  LaneFile file_{kSlots};
  std::vector<std::uint32_t> slots_, owned_, free_;
  std::uint32_t next_ = 0;
};

}  // namespace gpushare::testing
