#include "csrc/daemon/config/setting_values.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace gpushare::daemon {
namespace {

TEST(SettingValues, TimesHaveUnitsOrThePlainOne) {
  EXPECT_EQ(parse_time("250ms", seconds(1)), millis(250));
  EXPECT_EQ(parse_time("10 s", millis(1)), seconds(10));
  EXPECT_EQ(parse_time("1.5", seconds(1)), millis(1500));
  EXPECT_EQ(parse_time("250", millis(1)), millis(250));
  EXPECT_EQ(parse_time("2 min", seconds(1)), seconds(120));
  EXPECT_EQ(parse_time("1h", seconds(1)), seconds(3600));
  EXPECT_EQ(parse_time("40us", seconds(1)), micros(40));
  EXPECT_EQ(parse_time("0", seconds(1)), Nanos{0});
}

TEST(SettingValues, WhatIsNoTimeIsNothing) {
  for (const char* text : {"", "s", "-1", "10 parsecs", "1 s s", "nan", "inf", "1e300", "ten"}) {
    EXPECT_EQ(parse_time(text, seconds(1)), std::nullopt) << text;
  }
}

TEST(SettingValues, NumbersAreTheWholeText) {
  EXPECT_EQ(parse_number("0.02"), 0.02);
  EXPECT_EQ(parse_number("-3"), -3.0);
  for (const char* text : {"", "2 %", "x", "nan", "inf"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number(std::string("1\0", 2)), std::nullopt);
}

TEST(SettingValues, ModesAreOctalReadAndWriteBits) {
  EXPECT_EQ(parse_mode("0600"), 0600U);
  EXPECT_EQ(parse_mode("660"), 0660U);
  for (const char* text : {"", "0700", "8", "0600 ", "-1", "7777", "rw"}) {
    EXPECT_EQ(parse_mode(text), std::nullopt) << text;
  }
}

TEST(SettingValues, SocketPathsAreAbsoluteAndShort) {
  EXPECT_TRUE(is_socket_path("/run/gpushare/sock"));
  EXPECT_TRUE(is_socket_path("/" + std::string(99, 'x')));
  EXPECT_FALSE(is_socket_path("/" + std::string(100, 'x')));
  for (const char* text : {"", "/", "sock", "./sock", "/run/"}) {
    EXPECT_FALSE(is_socket_path(text)) << text;
  }
}

}  // namespace
}  // namespace gpushare::daemon
