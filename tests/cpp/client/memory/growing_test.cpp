// Room that is asked for only if it is free: by callers that other threads may wait for.
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/client_job_with_tensors.h"

namespace gpushare::client {
namespace {

using ::testing::HasSubstr;

class Growing : public JobWithTensors {
 protected:
  static alloc::RoomRequest request(Bytes bytes, Bytes like, alloc::Patience patience) {
    return {.bytes = bytes, .like = like, .room = {}, .patience = patience};
  }
  std::future<Status> grow(Bytes bytes, alloc::Patience patience) {
    return std::async(std::launch::async, [this, bytes, patience] {
      return job_->runtime->grow(request(bytes, bytes, patience));
    });
  }
  void deny(const wire::Need& need, const std::string& reason) {
    wire::Address of;
    of.job = JobId{7};
    coordinator_->send(wire::Denied{.of = of, .n = need.n, .reason = reason});
  }
};

TEST_F(Growing, RoomThatIsFreeIsGrantedToTheFirstCallEver) {
  start();
  ASSERT_TRUE(job_->runtime->grow(request(mib(64), mib(80), alloc::Patience::kOnlyFree)).ok());
  const auto need = coordinator_->wait_for<wire::Need>();
  EXPECT_TRUE(need.only_free);
  EXPECT_EQ(need.bytes, mib(64));
  EXPECT_EQ(need.like, mib(80));
  EXPECT_EQ(job_->allocator->room(), mib(80));
}

TEST_F(Growing, AllocationsWaitForOthers) {
  start();
  tensors_.emplace_back(*job_->allocator, mib(4), 1);
  EXPECT_FALSE(coordinator_->wait_for<wire::Need>().only_free);
}

TEST_F(Growing, RoomThatIsNotFreeFailsInTheCoordinatorsWords) {
  start_in_room(mib(64), mib(4));
  auto grown = grow(mib(100), alloc::Patience::kOnlyFree);
  deny(coordinator_->wait_for<wire::Need>(), "12.0 MiB of 100.0 MiB are free");
  const Status status = grown.get();
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(status.message(), "12.0 MiB of 100.0 MiB are free");
}

// Two of a program's threads allocate at the same moment: the coordinator has heard of no room in
// use yet, and what it denies the second is in what it gave the first.
TEST_F(Growing, WhatOneThreadIsDeniedAnotherMayHaveGot) {
  start_in_room(mib(64), mib(4));
  auto first = grow(mib(100), alloc::Patience::kWaits);
  const auto first_need = coordinator_->wait_for<wire::Need>();
  auto second = grow(mib(100), alloc::Patience::kWaits);
  const auto second_need = coordinator_->wait_for<wire::Need>();
  coordinator_->grant_room(mib(250), first_need.n);
  deny(second_need, "alone it needs more than the device has");
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
  // Not if it is too little for that.
  auto third = grow(mib(400), alloc::Patience::kWaits);
  deny(coordinator_->wait_for<wire::Need>(), "no");
  EXPECT_EQ(third.get().code(), StatusCode::kOutOfMemory);
}

// The memory of a suspended job comes back when somebody lets the job go on, however late that is.
TEST_F(Growing, WaitsAsLongAsTheCoordinatorAnswersAnything) {
  ClientConfig config;
  config.answer_patience = millis(1);
  start({.memory_wait = millis(1), .grants_room = false}, std::move(config));
  auto grown = grow(mib(100), alloc::Patience::kWaits);
  const auto need = coordinator_->wait_for<wire::Need>();
  for (int i = 0; i < 3; ++i)
    coordinator_->wait_for<wire::Explain>();
  coordinator_->grant_room(mib(100), need.n);
  const Status status = grown.get();
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST_F(Growing, GivesUpWhereTheCoordinatorAnswersNothing) {
  ClientConfig config;
  config.answer_patience = millis(1);
  start({.memory_wait = millis(1), .explains = false, .grants_room = false}, std::move(config));
  const Status status = grow(mib(100), alloc::Patience::kWaits).get();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("has not answered"));
}

TEST_F(Growing, AJobThatAsksForFreeRoomIsNotStopped) {
  start_in_room(mib(64), mib(4));
  auto grown = grow(mib(100), alloc::Patience::kOnlyFree);
  const auto need = coordinator_->wait_for<wire::Need>();
  const Bytes spare = job_->allocator->room() - job_->allocator->backed();
  const wire::Released released = coordinator_->revoke(spare + mib(2));
  EXPECT_EQ(released.bytes, spare);
  EXPECT_EQ(released.spilled, Bytes{0});
  EXPECT_THAT(released.reason, HasSubstr("not parked"));
  EXPECT_EQ(job_->allocator->route(), alloc::Route::kPrivate);
  deny(need, "no");
  EXPECT_EQ(grown.get().code(), StatusCode::kOutOfMemory);
  expect_intact();
}

TEST_F(Growing, AThreadThatIsStoppedGivesNothingWhileAnotherAsks) {
  start_in_room(mib(64), mib(4));
  auto stopped = grow(mib(100), alloc::Patience::kWaits);
  const auto first = coordinator_->wait_for<wire::Need>();
  auto grown = grow(mib(100), alloc::Patience::kOnlyFree);
  deny(coordinator_->wait_for<wire::Need>(), "no");
  EXPECT_EQ(grown.get().code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(coordinator_->revoke(job_->allocator->room()).spilled, Bytes{0});
  coordinator_->grant_room(mib(200), first.n);
  EXPECT_TRUE(stopped.get().ok());
}

// The answer comes all the same, and is room for the next one.
TEST_F(Growing, ACoordinatorThatDoesNotAnswerIsNotWaitedFor) {
  start_in_room(mib(64), mib(4));
  const Status status =
      job_->runtime->grow(request(mib(100), mib(100), alloc::Patience::kOnlyFree));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(status.message(), HasSubstr("has not answered"));
  coordinator_->grant_room(mib(100), coordinator_->wait_for<wire::Need>().n);
  coordinator_->wait_for<wire::Consumed>();
  coordinator_->wait_for<wire::Consumed>();
  EXPECT_EQ(job_->allocator->room(), mib(164));
}

TEST_F(Growing, WithoutAConnectionItFailsAndIsNotAskedAgain) {
  start_in_room(mib(64), mib(4));
  auto grown = grow(mib(100), alloc::Patience::kOnlyFree);
  coordinator_->wait_for<wire::Need>();
  coordinator_->drop_connection();
  EXPECT_EQ(grown.get().code(), StatusCode::kDeadlineExceeded);
  coordinator_->wait_for<wire::Hello>();
  coordinator_->wait_for<wire::Hello>();
  auto waiting = grow(mib(100), alloc::Patience::kWaits);
  const auto need = coordinator_->wait_for<wire::Need>();
  EXPECT_FALSE(need.only_free);
  coordinator_->grant_room(mib(100), need.n);
  EXPECT_TRUE(waiting.get().ok());
}

}  // namespace
}  // namespace gpushare::client
