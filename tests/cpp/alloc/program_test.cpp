// Random programs of everything the allocator and residency can do, against a plain record of what
// is live: no two blocks overlap, bytes stay, the books are the device's, room is kept. Two threads
// take turns to allocate and free, so that blocks are kept here and there.
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/cpp/support/alloc_worker.h"
#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::Route;

constexpr Bytes kProgramRoom = mib(40);

rc::Gen<std::int64_t> request_sizes() {
  return rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 3000),
                        rc::gen::inRange<std::int64_t>(1, 1 << 20),
                        rc::gen::inRange<std::int64_t>(1 << 20, 7 << 20));
}

class Program {
 public:
  explicit Program(bool overflows = false) : overflows_(overflows) {
    if (overflows) world_.residency.allow_overflow();
  }

  void run() {
    const int num_steps = *rc::gen::inRange(0, 120);
    for (int i = 0; i < num_steps; ++i) {
      step(*rc::gen::weightedElement<int>({{16, kAllocate},
                                           {12, kFree},
                                           {1, kEmptyCache},
                                           {2, kRelease},
                                           {2, kPark},
                                           {2, kRestoreAhead},
                                           {2, kUnpark},
                                           {3, kOpen},
                                           {4, kMarkLate},
                                           {2, kMoveIn},
                                           {2, kFigures}}));
      check();
    }
    unpark();
    while (!world_.live.empty())
      world_.give(0);
    world_.allocator->empty_cache();
    world_.residency.release(Bytes{}, false);  // returns the slots of what died meanwhile
    check();
    check_figures();
    RC_ASSERT(world_.vmm.backed() == Bytes{});
    RC_ASSERT(world_.slab.used() == Bytes{});
  }

 private:
  enum Step : int {
    kAllocate,
    kFree,
    kEmptyCache,
    kRelease,
    kPark,
    kRestoreAhead,
    kUnpark,
    kMoveIn,
    kOpen,
    kMarkLate,
    kFigures
  };

  void step(int what) {
    switch (what) {
      case kAllocate: allocate(); break;
      case kFree: free_one(); break;
      case kEmptyCache: world_.allocator->empty_cache(); break;
      case kRelease: release(false); break;
      case kPark: park(); break;
      case kRestoreAhead: restore_ahead(); break;
      case kMoveIn: move_in(); break;
      case kOpen: open(); break;
      case kMarkLate: mark_late(); break;
      case kFigures: check_figures(); break;
      default: unpark();
    }
  }
  // The sizes of before come again, as in a training loop: else little of what is kept is used.
  void allocate() {
    const bool is_known = !sizes_.empty() && *rc::gen::inRange(0, 4) > 0;
    if (!is_known) sizes_.push_back(Bytes{*request_sizes()});
    const std::size_t index = *rc::gen::inRange<std::size_t>(0, sizes_.size());
    in_some_thread([this, index] {
      const bool is_taken = world_.take(sizes_[index]);
      RC_ASSERT(is_taken || !overflows_);
    });
  }
  void move_in() {
    const Bytes room = world_.allocator->room() + mib(*rc::gen::inRange<std::int64_t>(0, 10));
    world_.allocator->set_room(room);
    // Reading figures empties the threads' caches, which gives overflow back too.
    const Bytes before = world_.allocator->stats().overflow_bytes;
    const Bytes unused = room - world_.allocator->backed();
    const Bytes most = mib(*rc::gen::inRange<std::int64_t>(0, 12));
    const Result<Bytes> moved = world_.residency.move_overflow_in(most);
    RC_ASSERT(moved.has_value());
    RC_ASSERT(*moved <= std::min(most, unused));
    RC_ASSERT(world_.allocator->overflow() == before - *moved);
  }
  void in_some_thread(const std::function<void()>& what) {
    if (*rc::gen::arbitrary<bool>()) {
      worker_.run(what);
    } else {
      what();
    }
  }
  void free_one() {
    if (world_.live.empty()) return;
    const std::size_t index = *rc::gen::inRange<std::size_t>(0, world_.live.size());
    const LiveBlock block = world_.live[index];
    RC_ASSERT(is_filled(block.address, block.size, block.seed));
    in_some_thread([this, index] { world_.give(index); });
  }
  void release(bool may_spill) {
    const Bytes room = world_.allocator->room();
    const Bytes wanted = mib(*rc::gen::inRange<std::int64_t>(0, 50));
    const alloc::ReleaseOutcome outcome = world_.residency.release(wanted, may_spill);
    RC_ASSERT(world_.allocator->room() == room - outcome.released);
    RC_ASSERT(outcome.reason.empty() == (outcome.released >= wanted));
    RC_ASSERT(outcome.released < wanted + vm::kChunkBytes);
  }
  void park() {
    is_parked_ = true;
    is_late_away_ = false;
    world_.allocator->set_route(Route::kOutside);
    release(true);
  }
  void restore_ahead() {
    if (!is_parked_ && !is_late_away_) return;
    const Bytes more = is_parked_ ? mib(*rc::gen::inRange<std::int64_t>(0, 10)) : Bytes{};
    const Bytes room = world_.allocator->room() + more;
    world_.allocator->set_room(room);
    const Bytes before = world_.residency.to_restore();
    const Bytes most = mib(*rc::gen::inRange<std::int64_t>(0, 12));
    const Result<Bytes> restored = world_.residency.restore_within_room(most);
    RC_ASSERT(restored.has_value());
    RC_ASSERT(*restored <= most);
    RC_ASSERT(world_.residency.to_restore() == before - *restored);
    RC_ASSERT(world_.allocator->room() == room);
  }
  // What is in place and what is to come back: what overflowed may have been given room since.
  Bytes needed_room() { return world_.allocator->backed() + world_.residency.to_restore(); }
  void unpark() {
    world_.allocator->set_room(std::max(kProgramRoom + mib(40), needed_room()));
    RC_ASSERT(world_.residency.restore().ok());
    is_parked_ = is_late_away_ = false;
    world_.allocator->set_route(Route::kPrivate);
    RC_ASSERT(world_.is_intact());
  }
  // An iteration begins, what is late comes back in it; or did, and now the rest is waited for.
  void open() {
    if (is_late_away_) {
      RC_ASSERT(world_.residency.restore().ok());
      is_late_away_ = false;
      RC_ASSERT(world_.is_intact());
    }
    if (!is_parked_) return;
    world_.allocator->raise_room(std::max(kProgramRoom, needed_room()));
    RC_ASSERT(world_.residency.restore_early().ok());
    is_parked_ = false;
    is_late_away_ = true;
    world_.allocator->set_route(Route::kPrivate);
    RC_ASSERT(world_.is_readable());
  }
  void mark_late() {
    if (world_.live.empty()) return;
    world_.mark_late(*rc::gen::inRange<std::size_t>(0, world_.live.size()));
  }

  void check() {
    world_.allocator->check_invariants();
    RC_ASSERT(world_.vmm.backed() == world_.allocator->backed());
    // Always, so that late memory has room to come back to.
    const Bytes owed = is_late_away_ ? world_.residency.to_restore() : Bytes{};
    RC_ASSERT(world_.allocator->backed() + owed <= world_.allocator->room());
    std::vector<LiveBlock> sorted = world_.live;
    std::sort(sorted.begin(), sorted.end(),
              [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      RC_ASSERT(reinterpret_cast<std::uintptr_t>(sorted[i].address) % 64 == 0U);
      if (i == 0) continue;
      RC_ASSERT(sorted[i - 1].address + sorted[i - 1].size.to_size() <= sorted[i].address);
    }
  }
  // Not after each step: reading figures empties the threads' caches.
  void check_figures() {
    Bytes live;
    for (const LiveBlock& block : world_.live)
      live += block.size;
    RC_ASSERT(world_.allocator->stats().requested_bytes.all.current == live.value());
  }

  const bool overflows_;
  World world_{kProgramRoom};
  Worker worker_;
  std::vector<Bytes> sizes_;
  bool is_parked_ = false;
  bool is_late_away_ = false;  // and the route is kPrivate
};

RC_GTEST_PROP(Programs, KeepBytesBooksAndRoom, ()) { Program().run(); }

RC_GTEST_PROP(Programs, KeepThemWhereWhatHasNoRoomOverflows, ()) { Program(true).run(); }

}  // namespace
}  // namespace gpushare::testing
