// What the decoder refuses, and that it says why.
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/wire/codec.h"

namespace gpushare::wire {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  const Result<JobMessage> result = decode_from_job(text);
  if (result.has_value()) return "accepted";
  EXPECT_EQ(result.error().code(), StatusCode::kProtocol);
  return result.error().message();
}

// `text` with the value of `field` replaced.
std::string with(std::string text, const std::string& field, const std::string& value) {
  const std::string key = "\"" + field + "\":";
  const std::size_t begin = text.find(key);
  EXPECT_NE(begin, std::string::npos) << field;
  const std::size_t from = begin + key.size();
  const std::size_t end = text.find_first_of(",}", from);
  return text.replace(from, end - from, value);
}

// `text` with `field` renamed, so that it is missing and another one is unknown.
std::string without(std::string text, const std::string& field) {
  const std::string key = "\"" + field + "\":";
  const std::size_t begin = text.find(key);
  EXPECT_NE(begin, std::string::npos) << field;
  return text.replace(begin, key.size(), "\"x" + field + "\":");
}

const std::string& need_text() {
  static const std::string text = encode(JobMessage(Need{{}, 3, mib(4), mib(8)}));
  return text;
}

const std::string& register_text() {
  static const std::string text = encode(JobMessage(Register{}));
  return text;
}

TEST(CodecRefusal, TheTextsBelowAreOtherwiseGood) {
  EXPECT_EQ(error_of(need_text()), "accepted");
  EXPECT_EQ(error_of(register_text()), "accepted");
  EXPECT_EQ(error_of(with(need_text(), "n", "4")), "accepted");
}

TEST(CodecRefusal, WhatIsNoJsonObject) {
  for (const char* text : {"", "{", "{\"v\":1,}", "\xFF", "{\"v\":1} x", "{\"a\":\"\xC0\"}"}) {
    EXPECT_EQ(error_of(text), "message is not JSON") << text;
  }
  for (const char* text : {"[]", "1", "null", "\"stop\"", "[{\"v\":1}]"}) {
    EXPECT_EQ(error_of(text), "message is not a JSON object") << text;
  }
  EXPECT_EQ(error_of(std::string(kMaxMessageBytes, '[')), "message is not JSON");
}

TEST(CodecRefusal, AMessageThatIsTooLongUnread) {
  const std::string longest = need_text() + std::string(kMaxMessageBytes - need_text().size(), ' ');
  EXPECT_EQ(error_of(longest), "accepted");
  EXPECT_EQ(error_of(longest + " "), "message of 131073 B, at most 131072 allowed");
}

TEST(CodecRefusal, AnotherVersionNamingBoth) {
  EXPECT_EQ(error_of(with(need_text(), "v", "2")),
            "protocol version 2 is not spoken here; this side speaks 1");
  EXPECT_THAT(error_of(with(need_text(), "v", "0")), HasSubstr("version 0"));
  EXPECT_THAT(error_of(with(need_text(), "v", "\"1\"")), HasSubstr("field v must be"));
  EXPECT_EQ(error_of(R"({"type":"stop","force":true})"), "field v is missing");
}

TEST(CodecRefusal, AnUnknownTypeWithoutEchoingItWhole) {
  EXPECT_EQ(error_of(R"({"v":1})"), "field type is missing or not a string");
  EXPECT_EQ(error_of(R"({"v":1,"type":7})"), "field type is missing or not a string");
  EXPECT_EQ(error_of(R"({"v":1,"type":"dance\u001b[2J"})"), "unknown message \"dance?[2J\"");
  EXPECT_LT(error_of(R"({"v":1,"type":")" + std::string(60000, 'x') + "\"}").size(), 100U);
}

TEST(CodecRefusal, WhatASocketMayNotCarry) {
  for (const char* type : {"wanted", "gave_up", "closed", "observed", "lost", "gone"}) {
    const std::string text = with(need_text(), "type", fmt::format("\"{}\"", type));
    EXPECT_EQ(error_of(text), fmt::format("{}: a socket may not carry it", type));
  }
}

TEST(CodecRefusal, AMessageOfTheOtherDirection) {
  const std::string grant = encode(CoordinatorMessage(Grant{}));
  EXPECT_EQ(error_of(grant), "unknown message \"grant\"");
  EXPECT_EQ(decode_from_coordinator(need_text()).error().message(), "unknown message \"need\"");
}

TEST(CodecRefusal, EachMissingFieldByItsName) {
  for (const char* field :
       {"job", "device", "gang", "rank", "ranks", "n", "need_bytes", "like_bytes", "only_free"}) {
    EXPECT_EQ(error_of(without(need_text(), field)),
              fmt::format("need: field {} is missing", field));
  }
  for (const char* field : {"name", "group", "priority", "weight", "memory_limit_bytes",
                            "iterations_total", "iterations_done"}) {
    EXPECT_EQ(error_of(without(register_text(), field)),
              fmt::format("register: field {} is missing", field));
  }
}

TEST(CodecRefusal, AShareThatIsNoPartOfAll) {
  for (const char* value : {"-0.1", "1.1", "null", "true", "\"0.5\""}) {
    EXPECT_THAT(error_of(with(register_text(), "share_limit", value)),
                HasSubstr("must be a number from 0 to 1"))
        << value;
  }
}

TEST(CodecRefusal, SlotsThatNoLaneHas) {
  const std::string text = encode(JobMessage(LaneChanged{}));
  EXPECT_EQ(error_of(without(text, "returned")), "lane_changed: field returned is missing");
  EXPECT_EQ(error_of(with(text, "donated", "[3,65536]")),
            "lane_changed: field donated has 65536, must have integers from 0 to 65535");
  for (const char* value : {"[-1]", "[1.5]", "[\"1\"]", "[null]"}) {
    EXPECT_THAT(error_of(with(text, "donated", value)), HasSubstr("field donated has")) << value;
  }
  std::string many = "[0";
  for (std::size_t i = 0; i < kMaxLaneSlots; ++i)
    many += ",1";
  for (const std::string& value : {std::string("7"), many + "]"}) {
    EXPECT_EQ(error_of(with(text, "donated", value)),
              "lane_changed: field donated must be an array of at most 8192 numbers");
  }
}

TEST(CodecRefusal, UnknownFieldsAreIgnored) {
  std::string text = need_text();
  text.insert(1, R"("later":{"a":[1,2]},)");
  EXPECT_EQ(decode_from_job(text).value(), decode_from_job(need_text()).value());
}

TEST(CodecRefusal, NumbersOutsideTheirRange) {
  EXPECT_EQ(error_of(with(need_text(), "need_bytes", "-1")),
            "need: field need_bytes is -1, must be an integer from 0 to 1152921504606846976");
  for (const char* value : {"1152921504606846977", "18446744073709551616", "4.0", "1e3", "null",
                            "\"4\"", "[]", "true"}) {
    EXPECT_THAT(error_of(with(need_text(), "need_bytes", value)), HasSubstr("field need_bytes is"))
        << value;
  }
  EXPECT_THAT(error_of(with(need_text(), "n", "-3")), HasSubstr("field n is -3"));
  const std::string hello = encode(JobMessage(Hello{}));
  EXPECT_THAT(error_of(with(hello, "pid", "2147483648")), HasSubstr("field pid is"));
  EXPECT_THAT(error_of(with(hello, "uid", "4294967296")), HasSubstr("field uid is"));
  EXPECT_THAT(error_of(with(hello, "held_term", "1152921504606846976")),
              HasSubstr("field held_term is"));
}

TEST(CodecRefusal, RanksThatCannotBe) {
  EXPECT_EQ(error_of(with(need_text(), "rank", "1")),
            "need: field rank is 1, must be below ranks, 1");
  EXPECT_THAT(error_of(with(need_text(), "ranks", "0")), HasSubstr("must be below ranks, 0"));
  EXPECT_EQ(error_of(with(need_text(), "ranks", "4096")), "accepted");
  EXPECT_EQ(error_of(with(need_text(), "ranks", "4097")),
            "need: field ranks is 4097, must be an integer from 0 to 4096");
}

TEST(CodecRefusal, WeightsThatAreNoShare) {
  for (const char* value : {"0", "0.0", "-1.5", "null", "\"1\"", "[]", "-0.0"}) {
    EXPECT_THAT(error_of(with(register_text(), "weight", value)),
                HasSubstr("must be a number above 0"))
        << value;
  }
  EXPECT_EQ(error_of(with(register_text(), "weight", "1e999")), "message is not JSON");
  EXPECT_EQ(error_of(with(register_text(), "weight", "2")), "accepted");
  Register endless;
  endless.settings.weight = std::numeric_limits<double>::infinity();
  EXPECT_THAT(error_of(encode(JobMessage(endless))), HasSubstr("field weight is"));
}

TEST(CodecRefusal, OtherTypesForTextAndTruth) {
  EXPECT_EQ(error_of(with(need_text(), "device", "7")),
            "need: field device is 7, must be a string");
  EXPECT_EQ(error_of(with(register_text(), "name", "[]")),
            "register: field name is a value of type array, must be a string");
  EXPECT_EQ(error_of(R"({"v":1,"type":"stop","force":1})"),
            "stop: field force is 1, must be true or false");
  EXPECT_THAT(error_of(with(register_text(), "priority", "\"urgent\"")),
              HasSubstr("is \"urgent\", must be guaranteed"));
  EXPECT_THAT(error_of(with(register_text(), "priority", "1")), HasSubstr("must be a string"));
}

TEST(CodecRefusal, TextThatIsTooLong) {
  const auto quoted = [](std::size_t size) { return "\"" + std::string(size, 'x') + "\""; };
  EXPECT_EQ(error_of(with(register_text(), "name", quoted(kMaxNameBytes))), "accepted");
  EXPECT_EQ(error_of(with(register_text(), "name", quoted(kMaxNameBytes + 1))),
            "register: field name has 129 B, must have at most 128");
  const std::string hello = encode(JobMessage(Hello{}));
  EXPECT_EQ(error_of(with(hello, "command", quoted(kMaxTextBytes))), "accepted");
  EXPECT_THAT(error_of(with(hello, "command", quoted(kMaxTextBytes + 1))),
              HasSubstr("command has 8193 B"));
}

TEST(CodecSettings, AreReadAsARegisterHasThem) {
  const auto settings = decode_settings(
      R"({"priority":"guaranteed","weight":2,"memory_limit_bytes":1024,"iterations_total":7})");
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(*settings, (JobSettings{.priority = Priority::kGuaranteed,
                                    .weight = 2,
                                    .memory_limit = Bytes{1024},
                                    .iterations_total = 7}));
  for (const char* const text :
       {"", "[]", "{}", R"({"priority":"urgent","weight":1,"memory_limit_bytes":0})",
        R"({"priority":"normal","weight":0,"memory_limit_bytes":0,"iterations_total":0})"}) {
    EXPECT_FALSE(decode_settings(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace gpushare::wire
