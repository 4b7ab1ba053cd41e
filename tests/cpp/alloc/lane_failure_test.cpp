// Random programs of two jobs of a lane in which one call of a job's device fails, each call in
// turn: no byte is lost or foreign, the books are the device's, and what failed succeeds when it is
// tried again.
#include <rapidcheck.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/alloc_lane.h"

namespace gpushare::testing {
namespace {

using alloc::Route;

constexpr Bytes kLaneTensor = mib(2);
constexpr Bytes kLaneRoom = gib(1);

enum class LaneOperationKind : std::uint8_t {
  kTake,
  kGive,
  kGiveAll,
  kHandOver,
  kShrink,
  kFork,
  kSpill,
  kLeave
};

struct LaneOperation {
  LaneOperationKind kind;
  std::uint32_t number;  // size in KiB, or which block
  bool is_strict;        // of a hand-over
};

void showValue(const LaneOperation& operation, std::ostream& os) {
  os << static_cast<int>(operation.kind) << ":" << operation.number << ":" << operation.is_strict;
}

rc::Gen<LaneOperation> lane_operations() {
  const auto kinds = rc::gen::weightedElement<LaneOperationKind>({{6, LaneOperationKind::kTake},
                                                                  {3, LaneOperationKind::kGive},
                                                                  {1, LaneOperationKind::kGiveAll},
                                                                  {8, LaneOperationKind::kHandOver},
                                                                  {1, LaneOperationKind::kShrink},
                                                                  {1, LaneOperationKind::kFork},
                                                                  {2, LaneOperationKind::kSpill},
                                                                  {1, LaneOperationKind::kLeave}});
  // At full size also in short programs, so that they share something.
  return rc::gen::resize(rc::kNominalSize, rc::gen::construct<LaneOperation>(
                                               kinds, rc::gen::inRange<std::uint32_t>(1, 3000),
                                               rc::gen::arbitrary<bool>()));
}

class LaneMachine {
 public:
  // Both jobs share the memory of two tensors.
  LaneMachine() {
    for (int round = 0; round < 4; ++round) {
      for (const auto& job : jobs_) {
        RC_ASSERT(lane_.open(*job).ok());
        RC_ASSERT(job->world.take(kLaneTensor) && job->world.take(kLaneTensor));
        give_all(*job);
        lane_.close(*job);
      }
    }
    RC_ASSERT(lane_.open(*jobs_[0]).ok());
  }

  FakeVmm& device_of(std::size_t job) { return jobs_.at(job)->world.vmm; }

  void run(const std::vector<LaneOperation>& program) {
    for (const LaneOperation& operation : program) {
      const bool is_done = carry_out(operation);
      check();
      if (is_done) continue;
      for (const auto& job : jobs_)
        job->world.vmm.fail_never();
      RC_ASSERT(carry_out(operation));
      check();
    }
  }

 private:
  [[nodiscard]] LaneJob& holder() { return *jobs_.at(holder_); }
  [[nodiscard]] LaneJob& waiter() { return *jobs_.at(1 - holder_); }

  static void give_all(LaneJob& job) {
    while (!job.world.live.empty())
      job.world.give(0);
  }

  // false: it failed, as it may while a failure is armed.
  bool carry_out(const LaneOperation& operation) {
    World& world = holder().world;
    switch (operation.kind) {
      case LaneOperationKind::kTake:
        return world.live.size() >= 4 || world.take(kib(operation.number));
      case LaneOperationKind::kGive:
        if (!world.live.empty()) world.give(operation.number % world.live.size());
        return true;
      case LaneOperationKind::kGiveAll: give_all(holder()); return true;
      case LaneOperationKind::kShrink: shrinks_ = true; return true;
      case LaneOperationKind::kFork: holder().lane.make_live_private(); return true;
      case LaneOperationKind::kSpill:
        waiter().world.residency.release(kLaneRoom, true);
        return true;
      case LaneOperationKind::kLeave: return waiter().lane.leave().ok();
      default: return hand_over(operation.is_strict);
    }
  }
  bool hand_over(bool is_strict) {
    if (!is_between_) {
      lane_.close(holder(), {.may_promote = true, .is_strict = is_strict});
      if (shrinks_) lane_.shrink();
      shrinks_ = false;
      holder_ = 1 - holder_;
      is_between_ = true;
    }
    holder().world.allocator->set_room(kLaneRoom);  // as granted
    if (!holder().world.residency.restore().ok() || !lane_.open(holder()).ok()) return false;
    is_between_ = false;
    return true;
  }

  void check() {
    for (const auto& job : jobs_) {
      const World& world = job->world;
      world.allocator->check_invariants();
      for (const LiveBlock& block : world.live)
        RC_ASSERT(is_filled(block.address, block.size, block.seed));
      const alloc::MemoryStats stats = world.allocator->stats();
      RC_ASSERT(world.vmm.backed() == world.allocator->backed() + stats.lane_bytes);
      RC_ASSERT(world.vmm.shared() == stats.donated_bytes + stats.lane_bytes);
      RC_ASSERT(world.vmm.frozen() == Bytes{});
      RC_ASSERT(world.allocator->backed() <= world.allocator->room());
    }
    RC_ASSERT(is_between_ || holder().world.is_intact());
    RC_ASSERT(is_between_ || holder().world.vmm.forbidden() == Bytes{});
  }

  Lane lane_;
  std::array<std::unique_ptr<LaneJob>, 2> jobs_{std::make_unique<LaneJob>(kLaneRoom),
                                                std::make_unique<LaneJob>(kLaneRoom)};
  std::size_t holder_ = 0;
  bool is_between_ = false;  // leases
  bool shrinks_ = false;     // at the next hand-over
};

RC_GTEST_PROP(FailingLanes, LoseNothingWhicheverCallOfTheDeviceFails, ()) {
  const auto program = *rc::gen::container<std::vector<LaneOperation>>(
      *rc::gen::inRange<std::size_t>(1, 11), lane_operations());
  for (const std::size_t job : {0U, 1U}) {
    LaneMachine undisturbed;
    const int before = undisturbed.device_of(job).num_calls();
    undisturbed.run(program);
    const int num_calls = undisturbed.device_of(job).num_calls() - before;
    for (int nth = 1; nth <= num_calls; ++nth) {
      LaneMachine machine;
      machine.device_of(job).fail_at(nth);
      machine.run(program);
    }
  }
}

}  // namespace
}  // namespace gpushare::testing
