#include "csrc/daemon/files/account_writer.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cpp/support/daemon_account_lines.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

class AccountWriterTest : public ::testing::Test {
 protected:
  [[nodiscard]] AccountPlace place() const {
    return {.folder = folder_.path() + "/accounts",
            .device = "cpu",
            .host = "box",
            .budget = mib(16),
            .socket_mode = 0600,
            .socket_group = {}};
  }
  static Account account(std::uint32_t job) {
    Account account;
    account.job = JobId{job};
    return account;
  }
  // While a file has the folder's name, nothing can be written.
  void block() const { std::ofstream(place().folder) << ""; }
  void unblock() const { std::filesystem::remove(place().folder); }
  [[nodiscard]] std::vector<nlohmann::json> written() const {
    return testing::account_lines(place().folder + "/cpu@box.000001.jsonl");
  }

  const testing::TempFolder folder_;
};

TEST_F(AccountWriterTest, HasWrittenAllInOrderWhenItEnds) {
  {
    AccountWriter writer(place());
    for (std::uint32_t job = 1; job <= 100; ++job)
      writer.put(account(job), UniqueFd());
  }
  const auto lines = written();
  ASSERT_EQ(lines.size(), 100U);
  for (std::size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(lines[i]["job"], i + 1);
}

TEST_F(AccountWriterTest, WritesLaterWhatItCannotWriteNow) {
  block();
  AccountWriter writer(place());
  writer.put(account(1), UniqueFd());
  unblock();
  ASSERT_TRUE(testing::eventually([this] { return written().size() == 1; }));
  writer.put(account(2), UniqueFd());
  ASSERT_TRUE(testing::eventually([this] { return written().size() == 2; }));
}

TEST_F(AccountWriterTest, KeepsTheOldestWhereTooManyWait) {
  block();
  {
    AccountWriter writer(place());
    for (std::uint32_t job = 1; job <= AccountWriter::kMost + 5; ++job)
      writer.put(account(job), UniqueFd());
    unblock();
    ASSERT_TRUE(testing::eventually([this] { return written().size() == AccountWriter::kMost; }));
  }
  const auto lines = written();
  ASSERT_EQ(lines.size(), AccountWriter::kMost);
  EXPECT_EQ(lines.back()["job"], AccountWriter::kMost);
}

TEST_F(AccountWriterTest, EndsWhereNothingCanBeWritten) {
  block();
  {
    AccountWriter writer(place());
    writer.put(account(1), UniqueFd());
  }
  EXPECT_TRUE(written().empty());
}

TEST_F(AccountWriterTest, WritesWhatIsLeftOverUnlessItIsThere) {
  {
    AccountWriter killed(place());
    killed.put(account(1), UniqueFd());
    killed.put(account(2), UniqueFd());
  }
  {
    AccountWriter next(place());
    for (const std::uint32_t job : {2U, 3U, 11U})
      next.put_left_over(account(job));
  }
  const auto lines = written();
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[2]["job"], 3);
  EXPECT_EQ(lines[3]["job"], 11) << "its line begins as that of job 1 does, but for the comma";
}

TEST_F(AccountWriterTest, SaysWhatIsNotWrittenYet) {
  block();
  AccountWriter writer(place());
  writer.put(account(1), UniqueFd());
  ASSERT_EQ(writer.waiting().size(), 1U);
  EXPECT_EQ(writer.waiting().front().second, line_of(account(1)));
  unblock();
  EXPECT_TRUE(testing::eventually([&writer] { return writer.waiting().empty(); }));
}

// The parent reaps the process while the writer waits for it, or before.
TEST_F(AccountWriterTest, AsksTheKernelHowTheProcessEnded) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(3);
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ASSERT_TRUE(process.is_valid());
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  {
    AccountWriter writer(place());
    writer.put(account(1), std::move(process));
  }
  ASSERT_EQ(written().size(), 1U);
  const nlohmann::json status = written().front()["wait_status"];
  if (status.is_null()) GTEST_SKIP() << "this kernel is older than 6.15";
  EXPECT_EQ(status, 3 << 8);
}

// Jobs that run have a right to descriptors, those that have ended do not.
TEST_F(AccountWriterTest, KeepsFewDescriptorsWhileItCannotWrite) {
  const auto num_descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  block();
  {
    AccountWriter writer(place());
    const auto before = num_descriptors();
    for (std::uint32_t job = 1; job <= 500; ++job) {
      const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
      ASSERT_GE(self, 0);
      writer.put(account(job), UniqueFd(self));
    }
    EXPECT_LT(num_descriptors() - before, 100);
    unblock();
    EXPECT_TRUE(testing::eventually([this] { return written().size() == 500; }));
  }
}

}  // namespace
}  // namespace gpushare::daemon
