#include "csrc/base/log.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpushare {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Log : public ::testing::Test {
 protected:
  void TearDown() override { log::configure(log::Level::kWarn, "gpushare"); }
};

TEST_F(Log, OneCallIsOneLineThatStartsWithTheName) {
  log::configure(log::Level::kInfo, "gpushared");
  ::testing::internal::CaptureStderr();
  log::info("job {} {} -> {} term {}", 7, "kWanted", "kOpenBusy", 42);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "gpushared: job 7 kWanted -> kOpenBusy term 42\n");
}

TEST_F(Log, LinesBelowTheLevelAreLeftOut) {
  log::configure(log::Level::kWarn, "gpushare");
  ::testing::internal::CaptureStderr();
  log::debug("a debug line");
  log::info("an info line");
  log::warn("a warning");
  log::error("an error");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("a warning"), HasSubstr("an error"), Not(HasSubstr("a debug line")),
                    Not(HasSubstr("an info line"))));
}

TEST_F(Log, OffIsSilent) {
  log::configure(log::Level::kOff, "gpushare");
  ::testing::internal::CaptureStderr();
  log::error("an error");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(log::is_on(log::Level::kError));
}

TEST_F(Log, BracesInALoggedTextAreNoFormat) {
  ::testing::internal::CaptureStderr();
  log::warn("{}", "{not a field}");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "gpushare: {not a field}\n");
}

TEST_F(Log, KeepsErrnoEvenIfTheLineCannotBeWritten) {
  log::configure(log::Level::kWarn, "gpushare", "/dev/full");
  ::testing::internal::CaptureStderr();  // where spdlog reports the full disk
  errno = EAGAIN;
  log::warn("a line");
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_NE(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Log, GoesToAFileThatWasNamed) {
  const std::string path = ::testing::TempDir() + "gpushare_log_test_" + std::to_string(::getpid());
  log::configure(log::Level::kInfo, "gpushared", path);
  log::info("job 3 joined");
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_THAT(text.str(), AllOf(HasSubstr("info"), HasSubstr("job 3 joined\n")));
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST_F(Log, LevelsAreReadByNameAndAnythingElseIsWarn) {
  EXPECT_EQ(log::parse_level("debug"), log::Level::kDebug);
  EXPECT_EQ(log::parse_level("info"), log::Level::kInfo);
  EXPECT_EQ(log::parse_level("warn"), log::Level::kWarn);
  EXPECT_EQ(log::parse_level("error"), log::Level::kError);
  EXPECT_EQ(log::parse_level("off"), log::Level::kOff);
  EXPECT_EQ(log::parse_level("loud"), log::Level::kWarn);
  EXPECT_EQ(log::parse_level(""), log::Level::kWarn);
}

TEST_F(Log, AFileGetsSoManyLinesASecondAndIsToldWhatIsMissing) {
  const std::string path = ::testing::TempDir() + "gpushare-log-limit";
  std::remove(path.c_str());
  log::configure(log::Level::kInfo, "gpushared", path);
  const auto num_lines = [&path] {
    std::ifstream file(path);
    std::string line;
    int count = 0;
    while (std::getline(file, line))
      ++count;
    return count;
  };
  constexpr int kFlood = 50'000;
  for (int i = 0; i < kFlood; ++i)
    log::info("line {}", i);
  EXPECT_GE(num_lines(), 2000);
  EXPECT_LT(num_lines(), kFlood / 2);
  // There is room for a line again every hundredth of a second.
  const auto text = [&path] {
    std::ostringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  };
  while (text().find("the last one") == std::string::npos)
    log::info("the last one");
  EXPECT_THAT(text(), HasSubstr(" lines left out: more than 100 a second\n"));
  log::configure(log::Level::kWarn, "gpushare");
  std::remove(path.c_str());
}

TEST_F(Log, AFileIsReplacedBeforeItIsLarge) {
  const std::string path = ::testing::TempDir() + "gpushare-log-rotation";
  log::configure(log::Level::kDebug, "gpushared", path);
  const std::string line(1 << 16, 'x');
  for (int i = 0; i < 400; ++i)
    log::info("{}", line);
  log::configure(log::Level::kWarn, "gpushare");
  constexpr std::uintmax_t kMost = 9 << 20;
  EXPECT_LT(std::filesystem::file_size(path), kMost);
  EXPECT_LT(std::filesystem::file_size(path + ".1"), kMost);
  EXPECT_FALSE(std::filesystem::exists(path + ".2"));
  std::remove(path.c_str());
  std::remove((path + ".1").c_str());
}

}  // namespace
}  // namespace gpushare
