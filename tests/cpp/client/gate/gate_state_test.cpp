#include "csrc/client/gate/gate_state.h"

#include <thread>

#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

GateState::Thread a_thread() { return std::this_thread::get_id(); }

TEST(GateState, AThreadThatRunsAHandlerStaysParked) {
  GateState gate;
  EXPECT_FALSE(gate.is_parked());
  gate.park();
  EXPECT_TRUE(gate.is_parked());
  EXPECT_FALSE(gate.is_handling());
  gate.let_handler_run();
  EXPECT_TRUE(gate.is_parked() && gate.is_handling());
  gate.park();
  EXPECT_TRUE(gate.is_handling()) << "it is parked already, and its handler has not ended";
  gate.come_back();
  EXPECT_TRUE(gate.is_parked());
  EXPECT_FALSE(gate.is_handling());
}

TEST(GateState, UnparkEndsTheHandlingToo) {
  GateState gate;
  gate.park();
  gate.let_handler_run();
  gate.unpark();
  EXPECT_FALSE(gate.is_parked() || gate.is_handling());
}

TEST(GateState, OnlyAParkedThreadRunsAHandlerInTheGate) {
  GateState gate;
  gate.let_handler_run();
  EXPECT_FALSE(gate.is_handling() || gate.is_parked());
  gate.come_back();
  EXPECT_FALSE(gate.is_parked()) << "nobody was there to come back";
}

TEST(GateState, TheOwnerKeepsOthersOut) {
  GateState gate;
  const GateState::Thread owner = a_thread();
  GateState::Thread other;
  std::thread([&other] { other = std::this_thread::get_id(); }).join();
  EXPECT_TRUE(gate.is_free_for(owner) && gate.is_free_for(other));
  gate.take(owner);
  EXPECT_TRUE(gate.is_free_for(owner)) << "it may call again";
  EXPECT_FALSE(gate.is_free_for(other));
  EXPECT_TRUE(gate.is_owned_by(owner) && gate.has_owner());
  EXPECT_FALSE(gate.is_owned_by(other));
  gate.leave();
  EXPECT_TRUE(gate.is_free_for(other));
  EXPECT_FALSE(gate.has_owner());
}

TEST(GateState, AThreadStaysParkedWhenItLeavesTheGateToOthers) {
  GateState gate;
  gate.take(a_thread());
  gate.park();
  gate.leave();
  EXPECT_TRUE(gate.is_parked());
}

TEST(GateState, AStopInsideIsNoParking) {
  GateState gate;
  gate.stop_inside(seconds(3));
  EXPECT_TRUE(gate.is_stopped_inside());
  EXPECT_EQ(gate.stopped_inside_at(), seconds(3));
  EXPECT_FALSE(gate.is_parked());
  gate.park();
  gate.unpark();
  EXPECT_TRUE(gate.is_stopped_inside()) << "another thread was in the gate";
  gate.go_on_inside();
  EXPECT_FALSE(gate.is_stopped_inside());
}

TEST(GateState, RemembersWhyItCouldNotClose) {
  GateState gate;
  gate.note_close_failure({StatusCode::kFailedPrecondition, "a stream is captured"});
  gate.set_close_due(true);
  EXPECT_TRUE(gate.is_close_due());
  gate.set_close_due(false);
  EXPECT_EQ(gate.close_failure().message(), "a stream is captured");
}

}  // namespace
}  // namespace gpushare::client
