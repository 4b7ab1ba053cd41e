#include "csrc/base/own_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include <gtest/gtest.h>

#include "csrc/base/unique_fd.h"

namespace gpushare {
namespace {

// Files of one file system, so they differ by their inodes alone.
int make_memfd() { return ::memfd_create("file", MFD_CLOEXEC); }
bool is_in_use(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(OwnFile, ClosesWhatIsStillItsOwn) {
  const int raw = make_memfd();
  {
    OwnFile fd{UniqueFd(raw)};
    EXPECT_EQ(fd.get(), raw);
    EXPECT_FALSE(fd.is_lost());
    const OwnFile moved(std::move(fd));
    EXPECT_EQ(moved.get(), raw);
  }
  EXPECT_FALSE(is_in_use(raw));
}

TEST(OwnFile, HoldsNothingAtFirst) {
  const OwnFile fd;
  EXPECT_FALSE(fd.is_valid());
  EXPECT_FALSE(fd.is_lost());
}

// As after os.closerange in a training program, and its next open().
TEST(OwnFile, ANumberThatAnotherFileHasNowIsNeitherUsedNorClosed) {
  const int raw = make_memfd();
  {
    const OwnFile fd{UniqueFd(raw)};
    ASSERT_EQ(::close(raw), 0);
    EXPECT_TRUE(fd.is_lost());
    EXPECT_EQ(fd.get(), -1);
    ASSERT_EQ(make_memfd(), raw);
    EXPECT_TRUE(fd.is_lost());
    EXPECT_EQ(fd.get(), -1);
  }
  EXPECT_TRUE(is_in_use(raw));
  ::close(raw);
}

TEST(OwnFile, AnotherFileTakesThePlaceOfALostOne) {
  const int raw = make_memfd();
  OwnFile fd{UniqueFd(raw)};
  ASSERT_EQ(::close(raw), 0);
  ASSERT_EQ(make_memfd(), raw);
  fd = OwnFile{UniqueFd(make_memfd())};
  EXPECT_TRUE(fd.is_valid());
  EXPECT_TRUE(is_in_use(raw)) << "it is the program's";
  ::close(raw);
}

}  // namespace
}  // namespace gpushare
