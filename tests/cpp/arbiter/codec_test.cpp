// Messages between a host and the arbiter, there and back, and bytes that are none.
#include "csrc/arbiter/codec.h"

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/arbiter/handshake.h"

namespace gpushare::arbiter {
namespace {

Contender contender() {
  return {.priority = wire::Priority::kInteractive,
          .weight = 2.5,
          .setback = 2,
          .deadline = millis(50),
          .served = seconds(3),
          .iterations_to_go = 100,
          .iteration = millis(7)};
}

Rank some_rank() {
  return {.number = 1,
          .report = {.gang = {1000, "ranks-1f"},
                     .job = JobId{7},
                     .ranks = 4,
                     .device = 2,
                     .is_known = false,
                     .steps = 12,
                     .stop_at = 20,
                     .wants = true,
                     .has_lease = true,
                     .is_in_gap = true,
                     .is_held_back = true,
                     .iteration = millis(3),
                     .switching = millis(4),
                     .gap = millis(5)}};
}

TEST(ArbiterCodec, MessagesOfAHostComeBackEqual) {
  const std::vector<HostMessage> messages = {Proof{.nonce = "n", .proof = "p"},
                                             Join{.version = "1.0",
                                                  .host = "node-1",
                                                  .place = "/run/gpushare/sock",
                                                  .instance = 5,
                                                  .devices = "cpu:0,cpu:1",
                                                  .seen_epoch = 9},
                                             some_rank(),
                                             Gone{JobId{7}},
                                             Singles{.device = 1,
                                                     .weights = "1000:2.5,1001:1",
                                                     .has_lease = true,
                                                     .first = JobId{9},
                                                     .contender = contender()},
                                             Looked{4}};
  for (const HostMessage& message : messages) {
    const auto back = decode_from_host(encode(message));
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_EQ(*back, message) << encode(message);
  }
}

TEST(ArbiterCodec, MessagesOfTheArbiterComeBackEqual) {
  const std::vector<ArbiterMessage> messages = {
      Challenge{.nonce = "n"}, Welcome{"p"}, Refused{"no"}, Look{8},
      Order{.epoch = 3,
            .order = {.job = JobId{7}, .is_open = true, .stop_at = 40, .why = "its row"}}};
  for (const ArbiterMessage& message : messages) {
    const auto back = decode_from_arbiter(encode(message));
    ASSERT_TRUE(back.has_value()) << back.error().message();
    EXPECT_EQ(*back, message) << encode(message);
  }
}

// A field that is added to RankReport stops this from compiling: name it here, in some_rank() with
// a value that is not its default, and in csrc/arbiter/codec_fields.h. Standing and setback go as a
// Contender.
TEST(ArbiterCodec, EachFieldOfARankComesBack) {
  const host::RankReport sent = some_rank().report;
  const auto message = decode_from_host(encode(HostMessage(some_rank())));
  ASSERT_TRUE(message.has_value());
  const auto& [gang, job, ranks, device, is_known, steps, stop_at, wants, has_lease, is_in_gap,
               is_held_back, iteration, switching, gap, standing, setback] =
      std::get<Rank>(*message).report;
  EXPECT_EQ(gang, sent.gang);
  EXPECT_EQ(job, sent.job);
  EXPECT_EQ(ranks, sent.ranks);
  EXPECT_EQ(device, sent.device);
  EXPECT_EQ(is_known, sent.is_known);
  EXPECT_EQ(steps, sent.steps);
  EXPECT_EQ(stop_at, sent.stop_at);
  EXPECT_EQ(wants, sent.wants);
  EXPECT_EQ(has_lease, sent.has_lease);
  EXPECT_EQ(is_in_gap, sent.is_in_gap);
  EXPECT_EQ(is_held_back, sent.is_held_back);
  EXPECT_EQ(iteration, sent.iteration);
  EXPECT_EQ(switching, sent.switching);
  EXPECT_EQ(gap, sent.gap);
}

TEST(ArbiterCodec, NumbersBeyondAnyProgramAreCut) {
  Rank rank = some_rank();
  rank.report.steps = rank.report.stop_at = ~std::uint64_t{0};
  rank.report.iteration = rank.report.switching = rank.report.gap = seconds(1'000'000);
  const auto back = decode_from_host(encode(rank));
  ASSERT_TRUE(back.has_value());
  const host::RankReport& report = std::get<Rank>(*back).report;
  EXPECT_EQ(report.steps, std::uint64_t{1} << 40);
  EXPECT_EQ(report.stop_at, std::uint64_t{1} << 40);
  EXPECT_EQ(report.iteration, seconds(3600));
  EXPECT_EQ(report.switching, seconds(3600));
  EXPECT_EQ(report.gap, seconds(3600));
}

TEST(ArbiterCodec, WhatIsNoMessageIsRefused) {
  const std::string rank = encode(HostMessage(some_rank()));
  const auto with = [&rank](const std::string& from, const std::string& to) {
    std::string text = rank;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  const std::vector<std::string> bad = {
      "",
      "[]",
      "{",
      "{\"type\":7}",
      "{\"type\":\"order\"}",
      std::string(kMaxFrameBytes + 1, ' '),
      std::string(5000, '['),
      with("\"rank\":1", "\"rank\":4"),
      with("\"steps\":12", "\"steps\":-1"),
      with("\"steps\":12", "\"steps\":1.5"),
      with("\"wants\":true", "\"wants\":1"),
      with("\"gang\":\"ranks-1f\"", "\"gang\":\"" + std::string(129, 'x') + "\""),
      with("\"job\":7,", ""),
  };
  for (const std::string& text : bad) {
    const auto message = decode_from_host(text);
    ASSERT_FALSE(message.has_value()) << text;
    EXPECT_EQ(message.error().code(), StatusCode::kProtocol);
    EXPECT_LT(message.error().message().size(), 400U);
  }
}

TEST(ArbiterCodec, NamesThatEndInALogAreMadePrintable) {
  const auto message = decode_from_host(encode(HostMessage(Join{.host = "a\x1b[2Jb\n"})));
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(std::get<Join>(*message).host.find_first_of("\x1b\n"), std::string::npos);
}

TEST(ArbiterHandshake, AProofHoldsForOneTokenOneSideAndOneConversation) {
  const Nonces nonces{.arbiter = "a", .host = "b"};
  const std::string proof = proof_of_host("token", nonces);
  EXPECT_EQ(proof, proof_of_host("token", nonces));
  EXPECT_NE(proof, proof_of_host("other", nonces));
  EXPECT_NE(proof, proof_of_arbiter("token", nonces));
  EXPECT_NE(proof, proof_of_host("token", {.arbiter = "a", .host = "c"}));
  // Nonces that give one text when they are put together.
  EXPECT_NE(proof_of_host("token", {.arbiter = "ab", .host = "c"}),
            proof_of_host("token", {.arbiter = "a", .host = "bc"}));
}

TEST(ArbiterCodec, AContenderKeepsWhatThePolicySees) {
  sched::Standing standing = standing_of(contender(), seconds(5));
  EXPECT_EQ(standing.priority, wire::Priority::kInteractive);
  EXPECT_EQ(standing.registered_at, seconds(5));
  EXPECT_EQ(contender_of(standing, setback_of(contender())), contender());
  Contender liar{.setback = 1000, .iterations_to_go = ~std::uint64_t{0}};
  EXPECT_EQ(setback_of(liar), sched::Setback::kBarred);
  EXPECT_LE(standing_of(liar, {}).iterations_to_go, 1e12);
}

TEST(ArbiterCodec, WeightsAreReadAsTheyWereWrittenAndNothingElseIs) {
  const std::map<std::uint32_t, double> weights{{1000, 2.5}, {1001, 0.125}};
  EXPECT_EQ(read_weights(weights_text(weights)).value(), weights);
  EXPECT_TRUE(read_weights("").value().empty());
  for (const char* text : {"1000", "1000:", ":1", "1000:0", "1000:-1", "1000:nan", "1000:inf",
                           "a:1", "1000:1,,", "1000:1 ", "99999999999:1", "1000:1e300"})
    EXPECT_EQ(read_weights(text).error().code(), StatusCode::kProtocol) << text;
  std::map<std::uint32_t, double> many;
  for (std::uint32_t user = 0; user < 100; ++user)
    many[user] = 1;
  EXPECT_EQ(read_weights(weights_text(many))->size(), kMaxUsers);
}

}  // namespace
}  // namespace gpushare::arbiter
