#include "csrc/base/units.h"

#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gpushare {
namespace {

// A byte count must not pass for a time or a bare number, nor one kind of id for another.
static_assert(!std::is_convertible_v<std::int64_t, Bytes>);
static_assert(!std::is_convertible_v<Bytes, std::int64_t>);
static_assert(!std::is_convertible_v<Bytes, Nanos>);
static_assert(!std::is_convertible_v<JobId, Term>);

constexpr Bytes kNoSize{-1};

TEST(Bytes, CountsInPowersOf1024) {
  EXPECT_EQ(kib(1), Bytes{1024});
  EXPECT_EQ(mib(3), Bytes{3 * 1024 * 1024});
  EXPECT_EQ(gib(2), mib(2048));
}

TEST(Bytes, ADifferenceMayBeNegative) {
  const Bytes missing = kib(1) - kib(3);
  EXPECT_LT(missing, Bytes{0});
  EXPECT_EQ(missing.value(), -2048);
}

TEST(Bytes, RoundsUpToTheNextStepAndNotBeyond) {
  EXPECT_TRUE(rc::check([] {
    const Bytes size{*rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 40)};
    const Bytes step{*rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 22)};
    const Bytes rounded = round_up(size, step);
    RC_ASSERT(rounded >= size);
    RC_ASSERT(rounded - size < step);
    RC_ASSERT(rounded.value() % step.value() == 0);
  }));
}

TEST(Bytes, AreWrittenInTheLargestUnitThatFits) {
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(Bytes{1023}), "1023 B");
  EXPECT_EQ(to_string(kib(1)), "1.0 KiB");
  EXPECT_EQ(to_string(mib(20)), "20.0 MiB");
  EXPECT_EQ(to_string(gib(1) + mib(512)), "1.5 GiB");
  EXPECT_EQ(to_string(gib(4096)), "4.0 TiB");
  EXPECT_EQ(to_string(Bytes{} - mib(2)), "-2.0 MiB");
}

TEST(Bytes, AreRoundedAsFormatDoes) {
  EXPECT_TRUE(rc::check([] {
    const int unit = *rc::gen::inRange(1, 5);
    const std::int64_t one = std::int64_t{1} << (10 * unit);
    // Quarters, which are as near to one tenth as to another, and anything.
    const std::int64_t size = *rc::gen::oneOf(
        rc::gen::map(rc::gen::inRange<std::int64_t>(4, 4096), [&](auto n) { return n * one / 4; }),
        rc::gen::inRange<std::int64_t>(one, one << 10));
    const double amount = static_cast<double>(size) / static_cast<double>(one);
    const std::string text = to_string(Bytes{size});
    RC_ASSERT(text.substr(0, text.find(' ')) == fmt::format("{:.1f}", amount));
  }));
  EXPECT_EQ(to_string(Bytes{std::numeric_limits<std::int64_t>::max()}), "8388608.0 TiB");
  EXPECT_EQ(to_string(Bytes{std::numeric_limits<std::int64_t>::min()}), "-8388608.0 TiB");
}

TEST(Bytes, AreReadWithBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("1048576"), mib(1));
  EXPECT_EQ(parse_bytes("64B"), Bytes{64});
  EXPECT_EQ(parse_bytes("2GiB"), gib(2));
  EXPECT_EQ(parse_bytes("512 MiB"), mib(512));
  EXPECT_EQ(parse_bytes("512m"), mib(512));
  EXPECT_EQ(parse_bytes("1.5 GB"), Bytes{1'500'000'000});
  EXPECT_EQ(parse_bytes("0.5kib"), Bytes{512});
  EXPECT_EQ(parse_bytes("0"), Bytes{0});
}

TEST(Bytes, AreNotReadFromWhatIsNoSize) {
  for (const char* text : {"", " ", "GiB", "-1", "-2GiB", "nan", "inf", "12 parsecs", "1.5 GBs",
                           "1GiB 2GiB", "9999999999 TiB", "8", "1048575", "0.5"}) {
    EXPECT_EQ(parse_bytes(text), kNoSize) << '"' << text << '"';
  }
}

TEST(Bytes, AnyTextIsASizeOrNone) {
  EXPECT_TRUE(rc::check([](const std::string& text) { RC_ASSERT(parse_bytes(text) >= kNoSize); }));
}

TEST(Bytes, AWholeNumberOfAUnitIsReadBackExactly) {
  EXPECT_TRUE(rc::check([] {
    const auto count = *rc::gen::inRange<std::int64_t>(0, 1 << 20);
    RC_ASSERT(parse_bytes(std::to_string(count) + "KiB") == kib(count));
    RC_ASSERT(parse_bytes(std::to_string(count) + " MB") == Bytes{count * 1'000'000});
  }));
}

TEST(Nanos, AreWrittenInTheLargestUnitThatFits) {
  EXPECT_EQ(to_string(Nanos{12}), "12 ns");
  EXPECT_EQ(to_string(micros(4)), "4 us");
  EXPECT_EQ(to_string(millis(35)), "35 ms");
  EXPECT_EQ(to_string(millis(1200)), "1.2 s");
  EXPECT_EQ(to_string(Nanos{} - millis(35)), "-35 ms");
}

TEST(Nanos, ConvertToSecondsAsAFraction) {
  EXPECT_DOUBLE_EQ(to_seconds(millis(1500)), 1.5);
  EXPECT_DOUBLE_EQ(to_seconds(Nanos{1}), 1e-9);
}

TEST(Quantity, ArithmeticIsThatOfItsCount) {
  EXPECT_EQ(seconds(3) / millis(500), 6);
  EXPECT_EQ(seconds(3) / 2, millis(1500));
  EXPECT_EQ(millis(2) * 3, micros(6000));
  Bytes total = kib(1);
  total += kib(2);
  total -= Bytes{1};
  EXPECT_EQ(total, Bytes{3071});
}

TEST(Ids, AreOrderedAndHashedByTheirNumber) {
  EXPECT_LT(Term{1}, Term{2});
  EXPECT_EQ(JobId{7}, JobId{7});
  const std::hash<JobId> hash;
  EXPECT_EQ(hash(JobId{7}), hash(JobId{7}));
  EXPECT_NE(hash(JobId{7}), hash(JobId{8}));
  EXPECT_GT(Term{std::numeric_limits<std::uint64_t>::max()}, Term{1});
}

}  // namespace
}  // namespace gpushare
