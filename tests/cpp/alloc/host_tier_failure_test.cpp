// The host tier's file fails for real: it is cut short under us, or its disk is full.
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/alloc/allocator/caching_allocator.h"
#include "csrc/alloc/residency/residency.h"
#include "csrc/vm/host/host_vmm.h"
#include "csrc/vm/mover.h"
#include "csrc/vm/tier/host_slab.h"

#include "tests/cpp/support/alloc_bytes.h"
#include "tests/cpp/support/vm_temp_folder.h"

namespace gpushare::testing {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kBlock = mib(4);
constexpr int kNumBlocks = 12;
constexpr Bytes kTierRoom = mib(48);

class HostTierFailure : public ::testing::Test {
 protected:
  // Takes all room with live blocks; the host tier is a file in the folder, after so much RAM.
  void populate(Bytes in_ram = {}) {
    slab_ = std::move(*vm::make_host_slab(folder_.path(), {in_ram, gib(1)}));
    residency_ = std::make_unique<alloc::Residency>(*allocator_, *slab_, mover_);
    for (int i = 0; i < kNumBlocks; ++i) {
      blocks_.push_back(static_cast<std::byte*>(allocator_->allocate(kBlock).value()));
      fill(blocks_.back(), kBlock, static_cast<std::uint64_t>(i));
    }
    allocator_->set_route(alloc::Route::kOutside);
  }
  void expect_all_back() {
    allocator_->raise_room(kTierRoom);
    const Status restored = residency_->restore();
    ASSERT_TRUE(restored.ok()) << restored.to_string();
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      EXPECT_TRUE(is_filled(blocks_[i], kBlock, i));
    EXPECT_EQ(slab_->used(), Bytes{});
    allocator_->check_invariants();
  }
  // It has no name: found through /proc.
  [[nodiscard]] std::string path_of_file() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;  // the iterator's own descriptor is gone when it is looked at
      const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
      if (target.rfind(folder_.path(), 0) == 0) return entry.path().string();
    }
    return {};
  }

  TempFolder folder_;
  vm::HostVmm vmm_;
  std::unique_ptr<vm::HostSlab> slab_;
  vm::Mover mover_;
  std::unique_ptr<alloc::CachingAllocator> allocator_ =
      std::move(*alloc::CachingAllocator::create(vmm_, {.initial_room = kTierRoom}));
  std::unique_ptr<alloc::Residency> residency_;
  std::vector<std::byte*> blocks_;
};

TEST_F(HostTierFailure, ARestoreFromAFileCutShortSaysSoAndLeavesTheBooksTrue) {
  populate();
  EXPECT_EQ(residency_->release(kTierRoom, true).spilled, kTierRoom);
  const std::string path = path_of_file();
  ASSERT_EQ(::truncate(path.c_str(), mib(9).value()), 0) << path << ", errno " << errno;
  allocator_->raise_room(kTierRoom);
  for (int i = 0; i < 2; ++i) {  // the second try finds the same
    const Status restored = residency_->restore();
    EXPECT_EQ(restored.code(), StatusCode::kIo);
    EXPECT_THAT(restored.message(), HasSubstr("the file in " + folder_.path() + " was cut short"));
    EXPECT_EQ(residency_->to_restore(), kTierRoom);
    EXPECT_EQ(allocator_->backed(), Bytes{});
    allocator_->check_invariants();
  }
  for (std::byte* block : blocks_)
    EXPECT_TRUE(allocator_->free(block));
  EXPECT_TRUE(residency_->restore().ok());
  EXPECT_EQ(slab_->used(), Bytes{});
}

// A file system in RAM of a given size, mounted over a folder.
class SmallDisk {
 public:
  SmallDisk(std::string folder, const std::string& size) : folder_(std::move(folder)) {
    is_mounted_ = ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
    error_ = errno;
  }
  ~SmallDisk() {
    if (is_mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool is_mounted() const { return is_mounted_; }
  [[nodiscard]] std::string why_not() const { return std::generic_category().message(error_); }

 private:
  std::string folder_;
  bool is_mounted_ = false;
  int error_ = 0;
};

TEST_F(HostTierFailure, AFullDiskEndsTheSpillWithItsReasonAndLosesNothing) {
  const SmallDisk disk(folder_.path(), "84m");  // 64 MiB of it are left to others
  if (!disk.is_mounted()) GTEST_SKIP() << "cannot mount a small disk: " << disk.why_not();
  populate();
  const alloc::ReleaseOutcome outcome = residency_->release(kTierRoom, true);
  EXPECT_GE(outcome.spilled, mib(16));
  EXPECT_LE(outcome.spilled, mib(20));
  EXPECT_EQ(outcome.released, outcome.spilled);
  EXPECT_THAT(outcome.reason, HasSubstr("kHostTierFull"));
  EXPECT_THAT(outcome.reason, HasSubstr("free on its disk"));
  EXPECT_EQ(allocator_->backed(), kTierRoom - outcome.spilled);
  allocator_->check_invariants();
  expect_all_back();
  slab_.reset();  // its file is on the disk
}

TEST_F(HostTierFailure, WithRamFullAndThenTheDiskTheSpillEndsAndNothingIsLost) {
  const SmallDisk disk(folder_.path(), "84m");  // 64 MiB of it are left to others
  if (!disk.is_mounted()) GTEST_SKIP() << "cannot mount a small disk: " << disk.why_not();
  populate(mib(12));
  const alloc::ReleaseOutcome outcome = residency_->release(kTierRoom, true);
  EXPECT_EQ(slab_->used_by_tier().ram, mib(12));
  EXPECT_EQ(slab_->used_by_tier().file, outcome.spilled_file);
  EXPECT_GE(outcome.spilled_file, mib(16));
  EXPECT_EQ(outcome.spilled, mib(12) + outcome.spilled_file);
  EXPECT_EQ(outcome.unplaced, kTierRoom - outcome.spilled);
  EXPECT_THAT(outcome.reason, HasSubstr("in RAM: 12.0 MiB used of 12.0 MiB"));
  EXPECT_THAT(outcome.reason, HasSubstr("free on its disk"));
  EXPECT_EQ(allocator_->backed(), kTierRoom - outcome.spilled);
  allocator_->check_invariants();
  expect_all_back();
  slab_.reset();  // its file is on the disk
}

}  // namespace
}  // namespace gpushare::testing
