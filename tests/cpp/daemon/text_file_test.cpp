#include "csrc/daemon/files/text_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using ::testing::HasSubstr;
using testing::TempFolder;

class TextFile : public ::testing::Test {
 protected:
  TempFolder folder_;
  const std::string path_ = folder_.path() + "/file";
};

TEST_F(TextFile, IsReadAsItWasWritten) {
  EXPECT_FALSE(read_text_file(path_, 100)->has_value());
  ASSERT_TRUE(write_text_file(path_, "one\ntwo\n").ok());
  EXPECT_EQ(**read_text_file(path_, 100), "one\ntwo\n");
  EXPECT_EQ(**read_text_file(path_, 5), "one\nt");
}

TEST_F(TextFile, ALinkIsNotFollowed) {
  ASSERT_TRUE(write_text_file(folder_.path() + "/other", "secret").ok());
  std::filesystem::create_symlink(folder_.path() + "/other", path_);
  EXPECT_FALSE(read_text_file(path_, 100).has_value());
}

TEST_F(TextFile, APipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto text = read_text_file(path_, 100);
  ASSERT_FALSE(text.has_value());
  EXPECT_THAT(text.error().message(), HasSubstr("no plain file"));
}

TEST_F(TextFile, APipeAtThePlaceOfTheNewVersionIsRemoved) {
  ASSERT_EQ(::mkfifo((path_ + ".new").c_str(), 0600), 0);
  ASSERT_TRUE(write_text_file(path_, "one\n").ok());
  EXPECT_EQ(**read_text_file(path_, 100), "one\n");
}

TEST_F(TextFile, AnotherUsersIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_TRUE(write_text_file(path_, "policy fifo").ok());
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  const auto text = read_text_file(path_, 100);
  ASSERT_FALSE(text.has_value());
  EXPECT_THAT(text.error().message(), HasSubstr("user 65534's"));
}

}  // namespace
}  // namespace gpushare::daemon
