#include "csrc/daemon/files/account_journal.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

class AccountJournalTest : public ::testing::Test {
 protected:
  [[nodiscard]] AccountPlace place(unsigned mode = 0600) const {
    return {.folder = folder_.path() + "/state/accounts",
            .device = "cpu",
            .host = "box",
            .budget = mib(1),
            .socket_mode = mode,
            .socket_group = {}};
  }
  [[nodiscard]] std::string path(int number) const {
    return place().folder + "/cpu@box.00000" + std::to_string(number) + ".jsonl";
  }
  static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static unsigned mode_of(const std::string& path) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777U;
  }

  const testing::TempFolder folder_;
};

TEST_F(AccountJournalTest, AppendsLinesForItsUserAlone) {
  AccountJournal journal(place());
  ASSERT_TRUE(journal.append("one").ok());
  ASSERT_TRUE(journal.append("two").ok());
  EXPECT_TRUE(journal.sync().ok());
  EXPECT_EQ(text_of(path(1)), "one\ntwo\n");
  EXPECT_EQ(mode_of(path(1)), 0600U);
  EXPECT_EQ(mode_of(place().folder), 0700U);
}

TEST_F(AccountJournalTest, IsReadableByWhomTheSocketLetsIn) {
  AccountJournal journal(place(0660));
  ASSERT_TRUE(journal.append("one").ok());
  EXPECT_EQ(mode_of(path(1)), 0640U);
  EXPECT_EQ(mode_of(place().folder), 0750U);
}

TEST_F(AccountJournalTest, SharesAFileWithAnother) {
  AccountJournal one(place());
  AccountJournal other(place());
  ASSERT_TRUE(one.append("one").ok());
  ASSERT_TRUE(other.append("two").ok());
  ASSERT_TRUE(one.append("three").ok());
  EXPECT_EQ(text_of(path(1)), "one\ntwo\nthree\n");
}

// As a full disk leaves it.
TEST_F(AccountJournalTest, BeginsANewLineAfterOneThatWasCutOff) {
  AccountJournal journal(place());
  ASSERT_TRUE(journal.append("one").ok());
  std::ofstream(path(1), std::ios::app) << "cut o";
  ASSERT_TRUE(journal.append("two").ok());
  EXPECT_EQ(text_of(path(1)), "one\ncut o\ntwo\n");
}

TEST_F(AccountJournalTest, RemovesTheOldestBeyondItsBudget) {
  AccountJournal journal(place());
  const std::string line(100'000, 'x');
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(journal.append(line).ok());
    std::uintmax_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(place().folder))
      sum += entry.file_size();
    ASSERT_LE(sum, 1U << 20) << "after line " << i;
  }
  EXPECT_FALSE(std::filesystem::exists(path(1)));
  EXPECT_TRUE(std::filesystem::exists(place().folder + "/cpu@box.000030.jsonl"));
}

TEST_F(AccountJournalTest, LeavesTheFilesOfOthersAlone) {
  std::filesystem::create_directories(place().folder);
  const std::vector<std::string> names{"cpu@other.000001.jsonl", "cpu@box.x.jsonl",
                                       "cpu@box..jsonl", "notes"};
  for (const std::string& name : names)
    std::ofstream(place().folder + "/" + name) << std::string(2'000'000, 'x');
  AccountJournal journal(place());
  ASSERT_TRUE(journal.append("one").ok());
  EXPECT_EQ(text_of(path(1)), "one\n");
  for (const std::string& name : names)
    EXPECT_TRUE(std::filesystem::exists(place().folder + "/" + name)) << name;
}

TEST_F(AccountJournalTest, FollowsNoLink) {
  std::filesystem::create_directories(place().folder);
  std::ofstream(folder_.path() + "/victim") << "its own";
  std::filesystem::create_symlink(folder_.path() + "/victim", path(1));
  AccountJournal journal(place());
  EXPECT_FALSE(journal.append("one").ok());
  EXPECT_EQ(text_of(folder_.path() + "/victim"), "its own");
}

TEST_F(AccountJournalTest, TakesNoFolderThatEverybodyMayWriteTo) {
  std::filesystem::create_directories(place().folder);
  std::filesystem::permissions(place().folder, std::filesystem::perms::all);
  AccountJournal journal(place());
  EXPECT_EQ(journal.append("one").code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gpushare::daemon
