#include "csrc/base/status.h"

#include <cerrno>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpushare {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Status, IsSuccessUnlessToldOtherwise) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.to_string(), "ok");
}

TEST(Status, AFailureSaysItsCodeAndWhatWasTried) {
  const Status status(StatusCode::kOutOfMemory, "back 20.0 MiB");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(status.to_string(), "kOutOfMemory: back 20.0 MiB");
}

TEST(Status, EachCodeHasItsOwnName) {
  std::set<std::string> names;
  for (auto code = StatusCode::kOk; code <= StatusCode::kIo;
       code = static_cast<StatusCode>(static_cast<int>(code) + 1)) {
    names.insert(name_of(code));
  }
  EXPECT_EQ(names.size(), 10U);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(Status, OfErrnoHasTheErrorsNameAndText) {
  errno = ENOENT;
  const Status status = errno_status("open /run/x");
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("open /run/x: ENOENT"), HasSubstr("No such file or directory")));
}

Result<int> half(int number) {
  if (number % 2 != 0) return fail(StatusCode::kInvalidArgument, "half of an odd number");
  return number / 2;
}

TEST(Result, HoldsAValueOrTheFailure) {
  EXPECT_EQ(half(8).value(), 4);
  const Result<int> odd = half(3);
  ASSERT_FALSE(odd.has_value());
  EXPECT_EQ(odd.error().code(), StatusCode::kInvalidArgument);
}

TEST(Result, PassesAFailureOnUnchanged) {
  const Result<std::string> passed_on = fail(half(3).error());
  ASSERT_FALSE(passed_on.has_value());
  EXPECT_EQ(passed_on.error().message(), "half of an odd number");
}

Status run_both(const Status& first, int& num_after_first) {
  GS_RETURN_IF_ERROR(first);
  ++num_after_first;
  return {};
}

TEST(ReturnIfError, LeavesTheFunctionOnlyOnAFailure) {
  int num_after_first = 0;
  EXPECT_TRUE(run_both({}, num_after_first).ok());
  EXPECT_EQ(num_after_first, 1);
  EXPECT_EQ(run_both({StatusCode::kCancelled, "stop"}, num_after_first).code(),
            StatusCode::kCancelled);
  EXPECT_EQ(num_after_first, 1);
}

}  // namespace
}  // namespace gpushare
