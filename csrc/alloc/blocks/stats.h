// The allocator's counters, under the names that torch.cuda.memory_stats gives the same things.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::alloc {

// One figure over time. The peak and the two sums can be reset, as
// torch.cuda.reset_peak_memory_stats() and reset_accumulated_memory_stats() do.
struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;  // sum of all increases
  std::int64_t freed = 0;      // sum of all decreases

  void increase(std::int64_t amount) {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  void decrease(std::int64_t amount) {
    current -= amount;
    freed += amount;
  }
};

// One figure for all memory, and for requests of at most 1 MiB and above it.
struct PooledStat {
  Stat all, small_pool, large_pool;
};

// Keys in Python: "<field>.<pool>.<current|peak|allocated|freed>", as torch.cuda's.
struct MemoryStats {
  PooledStat allocation;      // blocks handed out
  PooledStat segment;         // segments with backed chunks
  PooledStat active;          // blocks in use
  PooledStat inactive_split;  // free parts of used segments
  PooledStat allocated_bytes;
  PooledStat reserved_bytes;  // backed bytes
  PooledStat active_bytes;
  PooledStat inactive_split_bytes;
  PooledStat requested_bytes;  // as asked, before rounding
  std::int64_t num_ooms = 0;
  std::int64_t num_alloc_retries = 0;  // allocations that had to drop free chunks or ask for room
  // Ours, no torch.cuda counterpart.
  Bytes room;
  Bytes outside_bytes;              // of the outside arena: backed, or spilled
  Bytes spilled_bytes;              // in the host tier now
  Bytes overflow_bytes;             // used in the host tier: not reserved bytes
  Bytes lane_bytes;                 // mapped from the lane's pool: not reserved bytes
  Bytes donated_bytes;              // of reserved bytes: from the pool, but this job's alone
  Bytes live_private_bytes;         // live blocks of the private arena, resident or spilled
  std::int64_t num_operations = 0;  // allocations and frees so far: whether anything happens
};

struct BlockInfo {
  std::uintptr_t address = 0;
  Bytes size;
  Bytes requested;
  bool is_active = false;
};

struct SegmentInfo {
  std::uintptr_t address = 0;
  Bytes total_size;  // reserved
  Bytes backed;
  Bytes spilled;
  std::string arena;  // "private" "outside"
  std::string pool;   // "small" "large"
  std::vector<BlockInfo> blocks;
};

}  // namespace gpushare::alloc
