#include "csrc/daemon/files/profile_store.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "csrc/daemon/files/profile_file.h"
#include "csrc/ipc/event_loop.h"

#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

class ProfileStoreTest : public ::testing::Test {
 protected:
  ProfileStoreTest() : loop_(std::move(*ipc::EventLoop::create())) {}

  // A job with a model of its own has ended.
  void note_one() {
    profiles_.note({.uid = 1, .fingerprint = ++fingerprint_}, {.iteration = millis(5),
                                                               .tail = millis(6),
                                                               .gap = {},
                                                               .stall = {},
                                                               .sizes = {},
                                                               .iterations = 100});
  }
  [[nodiscard]] std::string path() const { return profile_path(socket_); }
  [[nodiscard]] bool is_there() const { return std::filesystem::exists(path()); }
  [[nodiscard]] std::size_t num_written() const {
    const auto read = read_profile_file(path());
    EXPECT_TRUE(read.has_value());
    return read ? read->size() : 0;
  }

  const testing::TempFolder folder_;
  const std::string socket_ = folder_.path() + "/own/sock";
  std::unique_ptr<ipc::EventLoop> loop_;
  sched::Profiles profiles_;
  std::uint64_t fingerprint_ = 0;
  ProfileStore store_{socket_, *loop_, [this]() -> const sched::Profiles& { return profiles_; }};
};

TEST_F(ProfileStoreTest, LoadsWhatWasSaved) {
  std::filesystem::create_directory(folder_.path() + "/own");
  note_one();
  store_.save();
  EXPECT_EQ(num_written(), 1U);
  ProfileStore next(socket_, *loop_, [this]() -> const sched::Profiles& { return profiles_; });
  EXPECT_EQ(next.load().oldest_first(), profiles_.oldest_first());
}

TEST_F(ProfileStoreTest, DoesNotWriteWhatHasNotChanged) {
  std::filesystem::create_directory(folder_.path() + "/own");
  note_one();
  store_.write();
  std::filesystem::remove(path());
  store_.save();
  store_.write();
  EXPECT_FALSE(is_there());
  store_.forget_written();
  store_.write();
  EXPECT_EQ(num_written(), 1U);
}

// Ten seconds are between two writes; a test that stands still for so long would see the second.
TEST_F(ProfileStoreTest, DoesNotWriteAgainAtOnce) {
  std::filesystem::create_directory(folder_.path() + "/own");
  note_one();
  store_.save();
  note_one();
  store_.save();
  EXPECT_EQ(num_written(), 1U);
  store_.write();
  EXPECT_EQ(num_written(), 2U) << "when the coordinator ends, nothing is put off";
}

TEST_F(ProfileStoreTest, TriesAFailedWriteAgain) {
  note_one();
  store_.save();  // the folder is missing
  EXPECT_FALSE(is_there());
  std::filesystem::create_directory(folder_.path() + "/own");
  store_.save();
  EXPECT_EQ(num_written(), 1U);
}

}  // namespace
}  // namespace gpushare::daemon
