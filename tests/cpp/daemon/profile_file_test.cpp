#include "csrc/daemon/files/profile_file.h"

#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/wire/limits.h"

#include "tests/cpp/support/daemon_fake_proc.h"
#include "tests/cpp/support/daemon_job.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::DaemonProcess;
using testing::JobProcess;
using testing::JobSide;
using testing::TempFolder;

constexpr std::uint64_t kModel = 0xfedcba9876543210;

sched::Profile profile_of(std::int64_t ms) {
  return {.iteration = millis(ms),
          .tail = millis(2 * ms),
          .gap = millis(3 * ms),
          .stall = millis(4 * ms),
          .sizes = {mib(30), mib(10)},
          .iterations = 100};
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ProfileFile, ReadsWhatWasWritten) {
  const TempFolder folder;
  const std::string path = profile_path(folder.path() + "/sock");
  sched::Profiles profiles;
  ASSERT_TRUE(write_profile_file(path, profiles).ok());
  EXPECT_EQ(read_profile_file(path)->size(), 0U);
  for (std::uint64_t i = 0; i < sched::Profiles::kMost; ++i)
    profiles.note({.uid = 4'000'000'000, .fingerprint = kModel - i}, profile_of(50));
  profiles.note({.uid = 3, .fingerprint = 1}, profile_of(7));
  ASSERT_TRUE(write_profile_file(path, profiles).ok());
  const auto read = read_profile_file(path);
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->oldest_first(), profiles.oldest_first());
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

// A line without them is an older coordinator's.
TEST(ProfileFile, TheLengthsOfRunsAreKept) {
  const TempFolder folder;
  const std::string path = folder.path() + "/sock.profiles";
  sched::Profile profile = profile_of(50);
  for (std::uint64_t run = 0; run < sched::Lengths::kMost; ++run)
    profile.lengths.note({.name = 0xffffffff, .iterations = wire::kMaxAmount - run});
  sched::Profiles profiles;
  profiles.note({.uid = 3, .fingerprint = kModel}, profile);
  profiles.note({.uid = 4, .fingerprint = kModel}, profile_of(7));
  ASSERT_TRUE(write_profile_file(path, profiles).ok());
  const auto read = read_profile_file(path);
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->oldest_first(), profiles.oldest_first());
  const std::string good = text_of(path);
  for (const char* lengths : {" lengths", " lengths 7", " lengths 0@1", " lengths 7@1,",
                              " lengths x@1", " lengths 7@1x", " sizes 7@1", " lengths 7@1 8@1"}) {
    std::string text = good;
    testing::write_file(path, text.insert(text.find("\nend"), lengths));
    EXPECT_FALSE(read_profile_file(path).has_value()) << lengths;
  }
}

TEST(ProfileFile, NoFileIsNothingRemembered) {
  const auto read = read_profile_file("/nonexistent/sock.profiles");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->size(), 0U);
}

TEST(ProfileFile, OtherTextIsRefused) {
  const TempFolder folder;
  const std::string path = folder.path() + "/sock.profiles";
  sched::Profiles profiles;
  profiles.note({.uid = 3, .fingerprint = kModel}, profile_of(50));
  ASSERT_TRUE(write_profile_file(path, profiles).ok());
  const std::string good = text_of(path);
  const std::string line =
      good.substr(good.find('\n') + 1, good.find("end\n") - good.find('\n') - 1);
  for (const std::string& text : std::vector<std::string>{
           "", "nonsense", good.substr(0, good.size() - 4),
           "gpushare-profiles 2\n" + line + "end\n", "gpushare-profiles 1\nprofile uid 3\nend\n",
           "gpushare-profiles 1\n" + line.substr(0, line.size() - 1) + " more 1\nend\n",
           "gpushare-profiles 1\nprofile uid x" + line.substr(13) + "end\n",
           "gpushare-profiles 1\n" + std::string(std::size_t{1} << 20, 'x')}) {
    testing::write_file(path, text);
    const auto read = read_profile_file(path);
    ASSERT_FALSE(read.has_value()) << text.substr(0, 200);
    EXPECT_EQ(read.error().code(), StatusCode::kProtocol) << text.substr(0, 200);
  }
}

TEST(ProfileFile, ADamagedOneIsKeptAside) {
  const TempFolder folder;
  const std::string path = folder.path() + "/sock.profiles";
  testing::write_file(path, "nonsense");
  EXPECT_EQ(load_profiles(path).size(), 0U);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(text_of(path + ".damaged"), "nonsense");
}

TEST(ProfileFile, AFolderThatDoesNotTakeItIsAnError) {
  EXPECT_EQ(write_profile_file("/nonexistent/sock.profiles", {}).code(), StatusCode::kIo);
}

// A job of that model, which says on its page that it has run so many iterations of 50 ms.
JobProcess make_job(const std::string& socket, std::uint64_t iterations) {
  return JobProcess([socket, iterations](JobSide& side) {
    side.connect(socket);
    side.hello(Bytes{}, {});
    side.register_job("model", kModel);
    side.tell("registered");
    if (iterations > 0) {
      side.want();
      side.wait_granted();
      side.page().iterations.store(iterations);
      side.page().busy_ns.store(millis(50).value() * static_cast<std::int64_t>(iterations));
      side.tell("iterates");
    }
    side.wait_for("end");
  });
}

// Of the job that comes next, at once.
nlohmann::json next_row(const std::string& socket, std::uint64_t job) {
  JobProcess next = make_job(socket, 0);
  next.expect("registered");
  return testing::job_row(socket, job);
}

// Killed in its lease: what its page says then counts.
void run_and_kill_job(const std::string& socket) {
  JobProcess job = make_job(socket, 10);
  job.expect("registered");
  job.expect("iterates");
  job.kill();
  ASSERT_TRUE(testing::eventually([&] { return testing::job_row(socket, 1).is_null(); }));
}

TEST(ServerProfiles, AJobBeginsWithWhatWasMeasuredOfTheOneBefore) {
  const TempFolder folder;
  const DaemonProcess daemon(folder);
  run_and_kill_job(daemon.socket());
  const nlohmann::json row = next_row(daemon.socket(), 2);
  EXPECT_EQ(row["iteration_source"], "remembered");
  EXPECT_DOUBLE_EQ(row["iteration_seconds"], 0.05);
}

// What it did until it closed its lease was in that message; nothing after it is to be believed.
TEST(ServerProfiles, AJobWithoutALeaseIsNotHeardOnceItIsGone) {
  const TempFolder folder;
  const DaemonProcess daemon(folder);
  JobProcess job([&](JobSide& side) {
    side.connect(daemon.socket());
    side.hello(Bytes{}, {});
    side.register_job("model", kModel);
    side.want();
    side.wait_granted();
    side.tell("open");
    side.wait_for("close");
    side.close_lease();
    side.wait_for("count");
    side.page().iterations.store(100);
    side.page().busy_ns.store(seconds(5).value());
    side.tell("counted");
    side.wait_for("end");
  });
  job.expect("open");
  job.tell("close");
  ASSERT_TRUE(testing::eventually(
      [&] { return testing::job_row(daemon.socket(), 1)["state"] != "running"; }));
  job.tell("count");
  job.expect("counted");
  job.kill();
  ASSERT_TRUE(testing::eventually([&] { return testing::job_row(daemon.socket(), 1).is_null(); }));
  EXPECT_EQ(next_row(daemon.socket(), 2)["iteration_source"], "unknown");
}

TEST(ServerProfiles, AreThereAfterTheCoordinatorWasKilled) {
  const TempFolder folder;
  {
    DaemonProcess daemon(folder);
    run_and_kill_job(daemon.socket());
    ASSERT_TRUE(std::filesystem::exists(profile_path(daemon.socket())));
    daemon.signal(SIGKILL);
    daemon.wait();
  }
  const DaemonProcess daemon(folder);
  EXPECT_EQ(next_row(daemon.socket(), 1)["iteration_source"], "remembered");
}

TEST(ServerProfiles, WhatIsNotWrittenYetIsWrittenAtTheEnd) {
  const TempFolder folder;
  DaemonProcess daemon(folder);
  run_and_kill_job(daemon.socket());
  const std::string path = profile_path(daemon.socket());
  ASSERT_TRUE(std::filesystem::exists(path));
  const std::string first = text_of(path);
  {
    // Soon after that: it waits.
    JobProcess job = make_job(daemon.socket(), 100);
    job.expect("registered");
    job.expect("iterates");
  }
  ASSERT_TRUE(testing::eventually([&] { return testing::job_row(daemon.socket(), 2).is_null(); }));
  EXPECT_EQ(text_of(path), first);
  daemon.signal(SIGTERM);
  EXPECT_EQ(daemon.wait(), 0);
  EXPECT_NE(text_of(path), first);
}

TEST(ServerProfiles, ADamagedFileKeepsNoCoordinatorFromStarting) {
  const TempFolder folder;
  testing::write_file(folder.path() + "/sock.profiles", "gpushare-profiles 1\nprofile uid\n");
  const DaemonProcess daemon(folder);
  ASSERT_EQ(profile_path(daemon.socket()), folder.path() + "/sock.profiles");
  EXPECT_EQ(next_row(daemon.socket(), 1)["iteration_source"], "unknown");
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/sock.profiles.damaged"));
}

}  // namespace
}  // namespace gpushare::daemon
