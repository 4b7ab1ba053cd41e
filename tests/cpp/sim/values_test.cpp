#include "csrc/sim/scenario/values.h"

#include <string>

#include <gtest/gtest.h>

namespace gpushare::sim {
namespace {

TEST(Values, TimesHaveUnits) {
  EXPECT_EQ(parse_time("1.5h"), seconds(5400));
  EXPECT_EQ(parse_time("2min"), seconds(120));
  EXPECT_EQ(parse_time("250ms"), millis(250));
  for (const char* const bad : {"", "5", "5 s", "-1s", "1e10s", "nan s", "5m", "s"})
    EXPECT_FALSE(parse_time(bad).has_value()) << bad;
}

TEST(Values, CountsAreWhole) {
  EXPECT_EQ(parse_count("12"), 12U);
  EXPECT_EQ(parse_count("1e3"), 1000U);
  for (const char* const bad : {"", "1.5", "-1", "1e16", "12x"})
    EXPECT_FALSE(parse_count(bad).has_value()) << bad;
}

TEST(Values, SizesAndNumbers) {
  EXPECT_EQ(parse_size("2GiB"), gib(2));
  EXPECT_FALSE(parse_size("2 gibs").has_value());
  EXPECT_EQ(parse_number("-0.5"), -0.5);
  EXPECT_FALSE(parse_number("inf").has_value());
  using namespace std::string_literals;
  EXPECT_FALSE(parse_number("1\0000"s).has_value()) << "a byte of 0 ends no text";
  EXPECT_FALSE(parse_time("1s\0"s).has_value());
}

}  // namespace
}  // namespace gpushare::sim
