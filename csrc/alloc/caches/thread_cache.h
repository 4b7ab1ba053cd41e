// Blocks that one thread freed a moment ago, kept by exact size for its next allocations.
//
// Which problem it solves: a training loop allocates the same sizes again and again, and the
// allocator's lock, best fit and joining cost more than all else in a pair of allocate and free. A
// block that is kept here stays a live block for everybody else; so its chunks stay backed, and it
// must go back to its pool before anything is dropped, spilled or counted (AllocatorCore does
// that).
//
// The cache keeps blocks of one arena only, the one its allocator's route names, or of none. Who
// changes the route closes each cache first; a block is handed out under the cache's lock, so
// after that none of the other arena is.
//
// threads: take() and keep() by the thread whose cache it is; all else by any, with the lock held.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/alloc/blocks/block.h"
#include "csrc/alloc/blocks/route.h"
#include "csrc/alloc/blocks/size_class.h"
#include "csrc/alloc/blocks/tally.h"
#include "csrc/base/spin_lock.h"
#include "csrc/base/units.h"

namespace gpushare::alloc {

class ThreadCache {
 public:
  // The most it keeps. Invariant: never more. A peak may be off by as much (tally.h).
  static constexpr Bytes kMostSmall = mib(1);
  static constexpr Bytes kMostLarge = mib(16);
  static constexpr std::uint32_t kMostBlocks = 256;  // closing a lease puts them back one by one

  explicit ThreadCache(std::optional<Route> arena) : arena_(arena) {}
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  // The address of a kept block of just this size, handed out now; null: there is none.
  // pre: block_size is block_size_of(requested).
  void* take(Bytes block_size, Bytes requested) GS_EXCLUDES(lock) {
    SpinLockGuard guard(lock);
    Block*& top = tops_[bin_for(block_size)];
    Block* const block = top;
    if (block == nullptr || block->size != block_size) return nullptr;
    const SizeClass size_class = size_class_of(requested);
    top = block->left;
    --num_blocks_;
    bytes_[static_cast<std::size_t>(size_class)] -= block_size;
    block->is_cached = false;
    block->requested = requested;
    tally_.on_allocate(size_class, block_size, requested);
    return block->address;
  }

  enum class Kept : std::uint8_t {
    kYes,
    kRefused,  // it is of another arena, late, or too large
    kFull,     // there would be room for it after take_all()
  };
  // Keeps a block that is freed now. pre: it is live, and its bytes are nobody's any more.
  // Our bug, and checked: it is kept already.
  Kept keep(Block* block) GS_EXCLUDES(lock);

  // All kept blocks, which then are the caller's to put back; and what the books do not know yet.
  struct Contents {
    Block* first = nullptr;  // the next one is `left`
    Tally tally;
  };
  Contents take_all() GS_REQUIRES(lock);
  // The arena whose blocks are kept from now on. pre: empty.
  void set_arena(std::optional<Route> arena) GS_REQUIRES(lock);
  [[nodiscard]] std::optional<Route> arena() const GS_REQUIRES(lock) { return arena_; }
  // The counts that the books do not know yet. With take_tally() the caller tells them now.
  [[nodiscard]] const Tally& tally() const GS_REQUIRES(lock) { return tally_; }
  [[nodiscard]] Tally take_tally() GS_REQUIRES(lock) { return std::exchange(tally_, {}); }

  [[nodiscard]] std::uint32_t num_blocks() const GS_REQUIRES(lock) { return num_blocks_; }
  [[nodiscard]] Bytes bytes(SizeClass size_class) const GS_REQUIRES(lock) {
    return bytes_[static_cast<std::size_t>(size_class)];
  }
  void check_invariants() const GS_REQUIRES(lock);

  mutable SpinLock lock;

 private:
  // Sizes in units of small blocks: exact up to 128 KiB, then bins that several sizes share.
  static std::size_t bin_for(Bytes block_size) {
    return bin_of(block_size.to_size() >> unit_shift(SizeClass::kSmall));
  }

  std::optional<Route> arena_ GS_GUARDED_BY(lock);
  std::uint32_t num_blocks_ GS_GUARDED_BY(lock) = 0;
  std::array<Bytes, 2> bytes_ GS_GUARDED_BY(lock);  // by SizeClass
  Tally tally_ GS_GUARDED_BY(lock);
  // Stacks: what was freed last is warm.
  std::array<Block*, kNumBins> tops_ GS_GUARDED_BY(lock) = {};
};

}  // namespace gpushare::alloc
