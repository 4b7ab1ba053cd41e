#include "csrc/client/memory/need_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

constexpr Bytes kRoom = mib(100);

alloc::RoomRequest request(Bytes bytes,
                           Bytes like,
                           alloc::Patience patience = alloc::Patience::kWaits) {
  return {.bytes = bytes, .like = like, .room = kRoom, .patience = patience};
}

wire::Need need(std::uint64_t n, Bytes bytes, Bytes like, Bytes room = kRoom) {
  return {.of = {}, .n = n, .bytes = bytes, .like = like, .room = room};
}

TEST(NeedTable, AnswersTheRequestThatIsNamed) {
  NeedTable needs;
  const std::uint64_t a = needs.add(request(mib(2), mib(32)));
  const std::uint64_t b = needs.add(request(mib(4), mib(32)));
  needs.on_grant(1, b);
  EXPECT_TRUE(needs.is_waiting(a));
  EXPECT_FALSE(needs.is_waiting(b));
  EXPECT_TRUE(needs.take(b).ok());
  needs.on_denied(a, "job 2 holds 1.0 GiB");
  const Status denied = needs.take(a);
  EXPECT_EQ(denied.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(denied.message(), "job 2 holds 1.0 GiB");
  EXPECT_FALSE(needs.has_waiting());
}

TEST(NeedTable, SaysWhatWasNotAnswered) {
  NeedTable needs;
  const std::uint64_t n = needs.add(request(mib(2), mib(32)));
  const Status status = needs.take(n);
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("2.0 MiB"), std::string::npos) << status.message();
}

TEST(NeedTable, IgnoresAnswersToRequestsGivenUp) {
  NeedTable needs;
  const std::uint64_t n = needs.add(request(mib(2), mib(32)));
  static_cast<void>(needs.take(n));
  needs.on_grant(1, n);
  needs.on_denied(n, "no");
  EXPECT_FALSE(needs.is_waiting(n));
  EXPECT_EQ(needs.last_grant(), 1U);
}

TEST(NeedTable, NumbersAreNeverUsedTwice) {
  NeedTable needs;
  const std::uint64_t a = needs.add(request(mib(2), mib(32)));
  static_cast<void>(needs.take(a));
  EXPECT_NE(needs.add(request(mib(2), mib(32))), a);
}

TEST(NeedTable, SendsAgainWhatStillWaits) {
  NeedTable needs;
  const std::uint64_t a = needs.add(request(mib(2), mib(32)));
  const std::uint64_t b = needs.add(request(mib(4), mib(64)));
  needs.on_grant(9, a);
  needs.on_new_connection();
  EXPECT_EQ(needs.last_grant(), 0U);
  wire::Address of;
  of.job = JobId{3};
  wire::Need expected = need(b, mib(4), mib(64));
  expected.of = of;
  EXPECT_EQ(needs.waiting(of), std::vector{expected});
}

TEST(NeedTable, WhatIsGivenUpIsAskedForWithOneRequest) {
  NeedTable needs;
  const std::uint64_t a = needs.add(request(mib(2), mib(32)));
  const std::uint64_t b = needs.add(request(mib(4), mib(64)));
  const std::uint64_t c = needs.add(request(mib(6), mib(64)));
  needs.on_grant(1, a);
  EXPECT_EQ(needs.oldest(), b);
  EXPECT_TRUE(needs.add_given(b, mib(10), mib(8)));
  EXPECT_FALSE(needs.add_given(a, mib(10), mib(8))) << "it is answered";
  EXPECT_FALSE(needs.add_given(0, mib(10), mib(8)));
  const wire::Address of;
  // In all it wants as much as before.
  const wire::Need grown = need(b, mib(14), mib(74), kRoom - mib(10));
  const wire::Need other = need(c, mib(6), mib(64));
  EXPECT_EQ(needs.waiting(of), (std::vector{grown, other}));
}

TEST(NeedTable, WhatIsAwayIsTakenBackOnce) {
  NeedTable needs;
  const std::uint64_t a = needs.add(request(mib(2), mib(32)));
  static_cast<void>(needs.add(request(mib(4), mib(64))));
  EXPECT_TRUE(needs.add_given(a, mib(10), mib(8)));
  EXPECT_TRUE(needs.add_given(a, mib(5), mib(5)));
  const wire::Address of;
  // The 2 MiB of free room it still lacks.
  const wire::Need changed = need(a, mib(4), mib(34), kRoom - mib(15));
  EXPECT_EQ(needs.take_back_away(of), std::vector{changed});
  EXPECT_THAT(needs.take_back_away(of), ::testing::IsEmpty());
}

TEST(NeedTable, WhatIsGivenUpWithoutAnOpenRequestIsNotAskedFor) {
  NeedTable needs;
  EXPECT_FALSE(needs.add_given(needs.oldest(), mib(10), mib(8)));
  const wire::Address of;
  const std::uint64_t n = needs.add(request(mib(2), mib(32)));
  EXPECT_EQ(needs.waiting(of), std::vector{need(n, mib(2), mib(32))});
}

TEST(NeedTable, ARequestForFreeRoomIsAnsweredAndNotCountedOn) {
  NeedTable needs;
  const std::uint64_t n = needs.add(request(mib(2), mib(32), alloc::Patience::kOnlyFree));
  EXPECT_TRUE(needs.is_waiting(n));
  EXPECT_FALSE(needs.has_waiting());
  const std::uint64_t waiting = needs.add(request(mib(4), mib(4)));
  EXPECT_TRUE(needs.add_given(needs.oldest(), mib(10), mib(8)));
  const wire::Address of;
  EXPECT_EQ(needs.waiting(of), std::vector{need(waiting, mib(14), mib(14), kRoom - mib(10))});
  needs.on_grant(1, n);
  EXPECT_TRUE(needs.take(n).ok());
}

TEST(NeedTable, GrantsAllWhenRoomHasNoLimit) {
  NeedTable needs;
  const std::uint64_t a = needs.add(request(mib(2), mib(32)));
  needs.grant_all();
  EXPECT_TRUE(needs.take(a).ok());
}

}  // namespace
}  // namespace gpushare::client
