#include "csrc/base/unique_fd.h"

#include <fcntl.h>

#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace gpushare {
namespace {

static_assert(!std::is_copy_constructible_v<UniqueFd>);
static_assert(std::is_nothrow_move_constructible_v<UniqueFd>);

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(UniqueFd, ClosesAtTheEndOfItsScope) {
  int raw = -1;
  {
    const UniqueFd fd(open_null());
    raw = fd.get();
    ASSERT_TRUE(fd.is_valid());
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

// What the program writes to its closed standard error must not come into our file.
TEST(UniqueFd, IsNeverOneOfTheStandardStreams) {
  const UniqueFd kept(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  ::close(STDERR_FILENO);
  const UniqueFd fd(open_null());
  const bool is_free = !is_open(STDERR_FILENO);
  ASSERT_EQ(::dup2(kept.get(), STDERR_FILENO), STDERR_FILENO);
  EXPECT_TRUE(is_free);
  EXPECT_GT(fd.get(), STDERR_FILENO);
  EXPECT_TRUE(is_open(fd.get()));
  EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(UniqueFd, HoldsNothingAtFirst) {
  const UniqueFd fd;
  EXPECT_FALSE(fd.is_valid());
  EXPECT_EQ(fd.get(), -1);
}

TEST(UniqueFd, AMoveHandsTheDescriptorOver) {
  UniqueFd from(open_null());
  const int raw = from.get();
  const UniqueFd to(std::move(from));
  EXPECT_FALSE(from.is_valid());  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_EQ(to.get(), raw);
  EXPECT_TRUE(is_open(raw));
}

TEST(UniqueFd, AssignmentClosesWhatWasHeldBefore) {
  UniqueFd fd(open_null());
  const int old = fd.get();
  UniqueFd other(open_null());
  const int raw = other.get();
  fd = std::move(other);
  EXPECT_FALSE(is_open(old));
  EXPECT_EQ(fd.get(), raw);
  EXPECT_TRUE(is_open(raw));
}

TEST(UniqueFd, AReleasedDescriptorStaysOpen) {
  UniqueFd fd(open_null());
  const UniqueFd rest(fd.release());
  EXPECT_FALSE(fd.is_valid());
  fd.reset();
  EXPECT_TRUE(is_open(rest.get()));
}

TEST(UniqueFd, ResettingToItsOwnDescriptorKeepsItOpen) {
  UniqueFd fd(open_null());
  fd.reset(fd.get());
  EXPECT_TRUE(is_open(fd.get()));
}

}  // namespace
}  // namespace gpushare
