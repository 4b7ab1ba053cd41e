#include "csrc/alloc/blocks/size_class.h"

#include <rapidcheck.h>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gpushare::alloc {
namespace {

TEST(SizeClass, SmallRequestsRoundToHalfAKibibyte) {
  EXPECT_EQ(block_size_of(Bytes{1}), Bytes{512});
  EXPECT_EQ(block_size_of(Bytes{512}), Bytes{512});
  EXPECT_EQ(block_size_of(Bytes{513}), Bytes{1024});
  EXPECT_EQ(block_size_of(mib(1)), mib(1));
}

TEST(SizeClass, LargeRequestsRoundToFourKibibytes) {
  EXPECT_EQ(size_class_of(mib(1)), SizeClass::kSmall);
  EXPECT_EQ(size_class_of(mib(1) + Bytes{1}), SizeClass::kLarge);
  EXPECT_EQ(block_size_of(mib(1) + Bytes{1}), mib(1) + kib(4));
}

RC_GTEST_PROP(SizeClass, BinsAreInOrderOfSize, ()) {
  const auto bits = *rc::gen::inRange(0, 40);
  const auto a = (std::uint64_t{1} << bits) + *rc::gen::inRange<std::uint64_t>(0, 1U << 20);
  const auto b = a + *rc::gen::inRange<std::uint64_t>(0, 1U << 20);
  RC_ASSERT(bin_of(a) <= bin_of(b));
  RC_ASSERT(bin_of(b) < kNumBins);
}

}  // namespace
}  // namespace gpushare::alloc
