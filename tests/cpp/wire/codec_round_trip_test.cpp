#include <string>
#include <variant>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "csrc/wire/codec.h"

#include "tests/cpp/wire/message_generators.h"

namespace gpushare::wire {
namespace {

RC_GTEST_PROP(CodecRoundTrip, EveryMessageOfAJobComesBackEqual, ()) {
  for (int kind = 0; kind < testing::kJobKinds; ++kind) {
    const JobMessage sent = testing::draw_job_message(kind);
    const std::string text = encode(sent);
    RC_ASSERT(text.size() <= kMaxMessageBytes);
    const Result<JobMessage> received = decode_from_job(text);
    if (!received.has_value()) RC_FAIL(received.error().to_string());
    RC_ASSERT(*received == sent);
    RC_ASSERT(sent.index() == static_cast<std::size_t>(kind));
  }
}

RC_GTEST_PROP(CodecRoundTrip, EveryMessageOfTheCoordinatorComesBackEqual, ()) {
  for (int kind = 0; kind < testing::kCoordinatorKinds; ++kind) {
    const CoordinatorMessage sent = testing::draw_coordinator_message(kind);
    const std::string text = encode(sent);
    RC_ASSERT(text.size() <= kMaxMessageBytes);
    const Result<CoordinatorMessage> received = decode_from_coordinator(text);
    if (!received.has_value()) RC_FAIL(received.error().to_string());
    RC_ASSERT(*received == sent);
    RC_ASSERT(sent.index() == static_cast<std::size_t>(kind));
  }
}

TEST(CodecRoundTrip, TheGeneratorKnowsEveryAlternative) {
  EXPECT_EQ(std::variant_size_v<CoordinatorMessage>,
            static_cast<std::size_t>(testing::kCoordinatorKinds));
  // Six more are read off the page or seen by the daemon.
  EXPECT_EQ(std::variant_size_v<JobMessage>, static_cast<std::size_t>(testing::kJobKinds) + 6);
}

TEST(CodecRoundTrip, TheLongestTextsFitAMessageEvenWhenEscaped) {
  const auto hello_of = [](char letter) {
    Hello hello;
    hello.version = hello.of.device = hello.of.gang = std::string(kMaxNameBytes, letter);
    hello.command = std::string(kMaxTextBytes, letter);
    return JobMessage(hello);
  };
  const std::string text = encode(hello_of('\x01'));
  EXPECT_LE(text.size(), kMaxMessageBytes);
  EXPECT_EQ(decode_from_job(text).value(), hello_of('?'));
}

TEST(CodecRoundTrip, TextThatIsTooLongOrNoUtf8IsRepairedOnTheWay) {
  Hello hello;
  hello.command = "\xFF" + std::string(2 * kMaxTextBytes, 'x');
  hello.of.gang = "a\xFE";
  const auto received = decode_from_job(encode(JobMessage(hello)));
  ASSERT_TRUE(received.has_value()) << received.error().to_string();
  const auto& back = std::get<Hello>(*received);
  EXPECT_EQ(back.command, "?" + std::string(kMaxTextBytes - 1, 'x'));
  EXPECT_EQ(back.of.gang, "a?");
}

TEST(CodecRoundTrip, WhatATerminalWouldObeyIsTakenOut) {
  Hello hello;
  hello.version = "1\x1b]0;title\x07";
  hello.command =
      "a\n[info] forged\xC2\x9B"
      "2J";
  const auto received = decode_from_job(encode(JobMessage(hello)));
  ASSERT_TRUE(received.has_value()) << received.error().to_string();
  EXPECT_EQ(std::get<Hello>(*received).version, "1?]0;title?");
  EXPECT_EQ(std::get<Hello>(*received).command, "a?[info] forged?2J");
}

TEST(CodecRoundTrip, VersionAndTypeStandInFront) {
  EXPECT_EQ(encode(JobMessage(Stop{true})), R"({"v":1,"type":"stop","force":true})");
  const Need need{Address{JobId{7}, "cpu", "", 0, 1}, 3, mib(4), mib(64), true};
  EXPECT_EQ(encode(JobMessage(need)),
            R"({"v":1,"type":"need","job":7,"device":"cpu","gang":"","rank":0,"ranks":1,)"
            R"("n":3,"need_bytes":4194304,"like_bytes":67108864,"only_free":true})");
}

TEST(CodecRoundTripDeathTest, WhatIsReadOffThePageIsNotEncoded) {
  EXPECT_DEATH(static_cast<void>(encode(JobMessage(Wanted{}))), "a socket may not carry wanted");
}

// What the version before this field sent.
TEST(CodecRoundTrip, AnOlderJobsMessagesAreRead) {
  const auto wish = decode_from_job(
      R"({"v":1,"type":"register","job":8,"device":"cpu","gang":"","rank":0,"ranks":1,"name":"",)"
      R"("group":"","priority":"normal","weight":1,"memory_limit_bytes":0,"iterations_total":0,)"
      R"("iterations_done":0})");
  ASSERT_TRUE(wish.has_value()) << wish.error().to_string();
  EXPECT_EQ(std::get<Register>(*wish).settings.deadline, Nanos{});
  EXPECT_EQ(std::get<Register>(*wish).settings.share_limit, 0);
  EXPECT_EQ(std::get<Register>(*wish).fingerprint, 0U);
  EXPECT_FALSE(std::get<Register>(*wish).stop_at.has_value()) << "it cannot stop with a gang";
}

// An older job reads nothing but its limit, which it cannot do without.
TEST(CodecRoundTrip, AChangeIsForAnOlderJobOneOfItsLimit) {
  Changed changed;
  changed.changes.weight = 2.0;
  changed.changes.memory_limit = mib(3);
  EXPECT_EQ(encode(CoordinatorMessage(changed)),
            R"({"v":1,"type":"limited","job":0,"device":"cpu","gang":"","rank":0,"ranks":1,)"
            R"("weight":2.0,"memory_limit_bytes":3145728,"by_uid":0})");
}

}  // namespace
}  // namespace gpushare::wire
