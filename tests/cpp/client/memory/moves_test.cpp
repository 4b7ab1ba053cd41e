#include "csrc/client/memory/moves.h"

#include <thread>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

using MoveState = Moves::State;

const Moves::Thread kNoThread;  // no thread that runs

class MovesTest : public ::testing::Test {
 protected:
  void start_waiting_restore() {
    moves_.start_restore(self_);
    moves_.wait_for_room(3);
  }

  const Moves::Thread self_ = std::this_thread::get_id();
  Moves moves_;
};

TEST_F(MovesTest, OneMovesAtATime) {
  EXPECT_TRUE(moves_.is_still());
  moves_.start_release();
  EXPECT_TRUE(moves_.is_releasing());
  EXPECT_FALSE(moves_.is_still() || moves_.is_restore_at_work());
  moves_.stop();
  moves_.start_restore(self_);
  EXPECT_TRUE(moves_.is_restore_at_work());
  EXPECT_FALSE(moves_.is_still() || moves_.is_releasing());
  moves_.stop();
  EXPECT_TRUE(moves_.is_still());
}

TEST_F(MovesTest, ARestoreBelongsToItsThread) {
  moves_.start_restore(self_);
  EXPECT_TRUE(moves_.is_restored_by(self_));
  EXPECT_FALSE(moves_.is_restored_by(kNoThread));
  moves_.stop();
  EXPECT_FALSE(moves_.is_restored_by(self_));
  moves_.start_release();
  EXPECT_FALSE(moves_.is_restored_by(self_)) << "a release is nobody's restore";
}

TEST_F(MovesTest, ARestoreThatWaitsStaysItsThreads) {
  start_waiting_restore();
  EXPECT_TRUE(moves_.is_restore_waiting());
  EXPECT_FALSE(moves_.is_restore_at_work()) << "it may wait for long";
  EXPECT_TRUE(moves_.is_restored_by(self_));
  EXPECT_FALSE(moves_.is_still());
  moves_.go_on();
  EXPECT_EQ(moves_.state(), MoveState::kRestoring);
}

TEST_F(MovesTest, GivingLeavesARestoreWaiting) {
  start_waiting_restore();
  moves_.start_giving();
  EXPECT_TRUE(moves_.is_giving());
  EXPECT_FALSE(moves_.is_restore_waiting()) << "one gives at a time";
  EXPECT_TRUE(moves_.is_restored_by(self_));
  moves_.stop_giving();
  EXPECT_TRUE(moves_.is_restore_waiting());
  EXPECT_FALSE(moves_.is_giving());
}

TEST_F(MovesTest, NothingMoreIsGivenOnceTheRoomHasCome) {
  start_waiting_restore();
  moves_.start_giving();
  moves_.go_on();
  EXPECT_EQ(moves_.state(), MoveState::kGivingLast);
  EXPECT_TRUE(moves_.is_giving()) << "the restore waits for its end";
  moves_.stop_giving();
  EXPECT_EQ(moves_.state(), MoveState::kRestoring);
}

TEST_F(MovesTest, AnInnerWaitEndsTheOuterOneForOthers) {
  start_waiting_restore();
  EXPECT_EQ(moves_.need(), 3U);
  moves_.wait_for_room(4);
  EXPECT_EQ(moves_.need(), 4U) << "what leaves now comes back with that";
  EXPECT_EQ(moves_.state(), MoveState::kRestoreWaits);
  moves_.go_on();
  EXPECT_EQ(moves_.state(), MoveState::kRestoring);
  moves_.go_on();
  EXPECT_EQ(moves_.state(), MoveState::kRestoring);
}

TEST_F(MovesTest, KnowsWhetherAThreadWaitsForItsTurn) {
  EXPECT_FALSE(moves_.has_waiting());
  {
    const Moves::Waiting first(moves_);
    const Moves::Waiting second(moves_);
    EXPECT_TRUE(moves_.has_waiting());
  }
  EXPECT_FALSE(moves_.has_waiting());
}

TEST_F(MovesTest, RemembersRoomAndTotals) {
  EXPECT_FALSE(moves_.has_room_ahead());
  moves_.set_room_ahead(true);
  EXPECT_TRUE(moves_.has_room_ahead());
  moves_.note_totals({.dropped = mib(1), .spilled = mib(2), .restored = mib(3)});
  EXPECT_EQ(moves_.totals().spilled, mib(2));
}

}  // namespace
}  // namespace gpushare::client
