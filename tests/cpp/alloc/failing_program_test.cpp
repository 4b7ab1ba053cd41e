// Random programs in which one call of the device or of the host tier fails, each call in turn: no
// bytes are lost, the books are the device's, and what failed succeeds when it is tried again.
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/alloc_world.h"

namespace gpushare::testing {
namespace {

using alloc::ReleaseOutcome;
using alloc::Route;

// Every block of a program fits, wherever it lies: so a second try has no excuse.
constexpr Bytes kFailingRoom = mib(64);
// Where there is overflow, some has no room.
constexpr Bytes kLittleRoom = mib(8);

enum class Kind : std::uint8_t {
  kAllocate,
  kFree,
  kWrite,
  kDrop,
  kGive,
  kPark,
  kSetRoom,
  kMoveIn,
  kUnpark,
  kOpen,
  kMarkLate
};

constexpr std::uint32_t kMostNumber = 5000;

struct Operation {
  Kind kind;
  std::uint32_t number;  // size in KiB, how much of what is backed to give, or which block
};

void showValue(const Operation& operation, std::ostream& os) {
  os << static_cast<int>(operation.kind) << ":" << operation.number;
}

rc::Gen<Operation> operations() {
  const auto kinds = rc::gen::weightedElement<Kind>({{6, Kind::kAllocate},
                                                     {3, Kind::kFree},
                                                     {2, Kind::kWrite},
                                                     {1, Kind::kDrop},
                                                     {2, Kind::kGive},
                                                     {4, Kind::kPark},
                                                     {1, Kind::kSetRoom},
                                                     {1, Kind::kMoveIn},
                                                     {2, Kind::kUnpark},
                                                     {4, Kind::kOpen},
                                                     {2, Kind::kMarkLate}});
  // At full size also in short programs, so that they move something.
  return rc::gen::resize(
      rc::kNominalSize,
      rc::gen::construct<Operation>(kinds, rc::gen::inRange<std::uint32_t>(1, kMostNumber)));
}

// The program's state, and the plain model of it: what is live with which bytes (in the world), and
// whether private memory may be away.
class Machine {
 public:
  explicit Machine(bool overflows) : overflows_(overflows) {
    if (overflows) world_.residency.allow_overflow();
  }
  World& world() { return world_; }

  void run(const std::vector<Operation>& program) {
    for (const Operation& operation : program) {
      if (!carry_out(operation)) {
        check();
        disarm();
        RC_ASSERT(carry_out(operation));
      }
      check();
    }
    disarm();
    RC_ASSERT(unpark());
    while (!world_.live.empty())
      world_.give(0);
    world_.allocator->empty_cache();
    world_.residency.release(Bytes{}, false);  // returns the slots of what died meanwhile
    check();
    RC_ASSERT(world_.vmm.backed() == Bytes{});
    RC_ASSERT(world_.slab.used() == Bytes{});
  }

 private:
  void disarm() {
    world_.vmm.fail_never();
    world_.slab.fail_never();
  }

  // false: it failed, as it may while a failure is armed.
  bool carry_out(const Operation& operation) {
    const std::size_t index = world_.live.empty() ? 0 : operation.number % world_.live.size();
    switch (operation.kind) {
      case Kind::kAllocate:
        if (world_.live.size() >= 8) return true;
        if (!overflows_) world_.allocator->raise_room(kFailingRoom);
        return world_.take(kib(operation.number));
      case Kind::kFree:
        if (!world_.live.empty()) world_.give(index);
        return true;
      case Kind::kWrite: write(index); return true;
      case Kind::kDrop: world_.allocator->empty_cache(); return true;
      case Kind::kGive: return release(share_of_backed(operation.number));
      case Kind::kPark: return park(operation.number);
      case Kind::kSetRoom: world_.allocator->set_room(kFailingRoom + mib(2)); return true;
      case Kind::kMoveIn: return world_.residency.move_overflow_in(mib(64)).has_value();
      case Kind::kOpen: return is_parked_ ? open() : unpark();
      case Kind::kMarkLate:
        if (!world_.live.empty()) world_.mark_late(index);
        return true;
      default: return unpark();
    }
  }

  [[nodiscard]] bool may_be_away(const LiveBlock& block) const {
    return is_parked_ || (is_late_away_ && block.route == Route::kPrivate);
  }
  void write(std::size_t index) {
    if (world_.live.empty()) return;  // away or not: what is spilled is shown
    LiveBlock& block = world_.live[index];
    block.seed = world_.next_seed++;
    fill(block.address, block.size, block.seed);
  }
  bool release(Bytes wanted) {
    const Bytes room = world_.allocator->room();
    const ReleaseOutcome outcome = world_.residency.release(wanted, is_parked_);
    RC_ASSERT(world_.allocator->room() == room - outcome.released);
    RC_ASSERT(outcome.reason.empty() == (outcome.released >= wanted));
    RC_ASSERT(outcome.released < wanted + vm::kChunkBytes);
    // What cannot go: all that is live, unless it is parked.
    Bytes stays;
    for (const LiveBlock& block : world_.live)
      stays += is_parked_ && may_be_away(block) ? Bytes{} : block.size + vm::kChunkBytes * 2;
    return outcome.released >= std::min(wanted, room - stays);
  }
  // All unused room and a part of what is backed, often all of it.
  [[nodiscard]] Bytes share_of_backed(std::uint32_t number) const {
    const Bytes backed = world_.allocator->backed();
    const std::int64_t doubled = backed.value() * 2 * number / kMostNumber;
    return world_.allocator->room() - backed + std::min(backed, Bytes{doubled});
  }
  bool park(std::uint32_t number) {
    is_parked_ = true;
    is_late_away_ = false;
    world_.allocator->set_route(Route::kOutside);
    return release(share_of_backed(number));
  }
  bool unpark() {
    world_.allocator->raise_room(kFailingRoom);
    if (!world_.residency.restore().ok()) return false;
    is_parked_ = is_late_away_ = false;
    world_.allocator->set_route(Route::kPrivate);
    return true;
  }
  // An iteration begins, what is late stays away.
  bool open() {
    world_.allocator->raise_room(kFailingRoom);
    if (!world_.residency.restore_early().ok()) return false;
    is_parked_ = false;
    is_late_away_ = true;
    world_.allocator->set_route(Route::kPrivate);
    return true;
  }

  void check() {
    world_.allocator->check_invariants();
    RC_ASSERT(world_.vmm.backed() == world_.allocator->backed());
    RC_ASSERT(world_.allocator->backed() <= world_.allocator->room());
    for (const LiveBlock& block : world_.live) {
      const bool is_there = overflows_ ? world_.vmm.is_reachable(block.address, block.size)
                                       : world_.vmm.is_backed(block.address, block.size);
      RC_ASSERT(may_be_away(block) || is_there);
      RC_ASSERT(is_filled(block.address, block.size, block.seed));
    }
    RC_ASSERT(world_.vmm.frozen() == Bytes{});
    RC_ASSERT(world_.vmm.shown() <= world_.slab.used());
  }

  const bool overflows_;
  World world_{overflows_ ? kLittleRoom : kFailingRoom};
  bool is_parked_ = false;
  bool is_late_away_ = false;
};

// The program once for each call that it makes without a failure.
template <typename Fake>
void fail_each_call(const std::vector<Operation>& program,
                    Fake World::* fake,
                    bool overflows = false) {
  Machine undisturbed(overflows);
  undisturbed.run(program);
  const int num_calls = (undisturbed.world().*fake).num_calls();
  for (int nth = 1; nth <= num_calls; ++nth) {
    Machine machine(overflows);
    (machine.world().*fake).fail_at(nth);
    machine.run(program);
  }
}

RC_GTEST_PROP(FailingPrograms, LoseNothingWhicheverCallOfTheDeviceFails, ()) {
  fail_each_call(*rc::gen::container<std::vector<Operation>>(*rc::gen::inRange<std::size_t>(1, 12),
                                                             operations()),
                 &World::vmm);
}

RC_GTEST_PROP(FailingPrograms, LoseNothingWhicheverCallOfTheHostTierFails, ()) {
  fail_each_call(*rc::gen::container<std::vector<Operation>>(*rc::gen::inRange<std::size_t>(1, 12),
                                                             operations()),
                 &World::slab);
}

RC_GTEST_PROP(FailingPrograms, LoseNothingWhereWhatHasNoRoomOverflows, ()) {
  const auto program = *rc::gen::container<std::vector<Operation>>(
      *rc::gen::inRange<std::size_t>(1, 12), operations());
  fail_each_call(program, &World::vmm, true);
  fail_each_call(program, &World::slab, true);
}

}  // namespace
}  // namespace gpushare::testing
