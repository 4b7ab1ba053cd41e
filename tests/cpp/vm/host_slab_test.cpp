#include "csrc/vm/tier/host_slab.h"

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/vm/contract/vmm.h"
#include "csrc/vm/tier/file_slab.h"

#include "tests/cpp/support/vm_temp_folder.h"

namespace gpushare::testing {
namespace {

using ::testing::HasSubstr;
using vm::kChunkBytes;

enum class Kind { kRam, kFile, kBoth };

class HostSlab : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<vm::HostSlab> make(Bytes budget) {
    const std::string folder = GetParam() == Kind::kRam ? "" : folder_.path();
    auto slab = GetParam() == Kind::kBoth
                    ? vm::make_host_slab(folder, {kChunkBytes, budget - kChunkBytes})
                    : vm::make_host_slab(folder, budget);
    EXPECT_TRUE(slab.has_value());
    return std::move(*slab);
  }
  static std::vector<std::byte> pattern(int seed) {
    std::vector<std::byte> bytes(kChunkBytes.to_size());
    std::size_t done = 251;  // no divisor of a size that bytes could be moved by
    for (std::size_t i = 0; i < done; ++i) {
      bytes[i] = std::byte((i * 7 + static_cast<std::size_t>(seed)) % done);
    }
    for (; done < bytes.size(); done *= 2) {
      std::memcpy(&bytes[done], bytes.data(), std::min(done, bytes.size() - done));
    }
    return bytes;
  }
  // A comparison of vectors takes bytes one by one, which takes seconds under a sanitizer.
  static bool is_pattern(const void* bytes, int seed) {
    return std::memcmp(bytes, pattern(seed).data(), kChunkBytes.to_size()) == 0;
  }
  TempFolder folder_;
};

TEST_P(HostSlab, GivesEachSlotItsOwnBytesBack) {
  const auto slab = make(mib(200));
  std::vector<vm::SlotId> slots;
  for (int i = 0; i < 40; ++i) {  // more than one extent
    slots.push_back(slab->take().value());
    ASSERT_TRUE(slab->write(slots.back(), pattern(i).data(), kChunkBytes).ok());
  }
  std::vector<std::byte> back(kChunkBytes.to_size());
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(slab->read(slots[static_cast<std::size_t>(i)], back.data(), kChunkBytes).ok());
    EXPECT_TRUE(is_pattern(back.data(), i)) << "slot " << i;
  }
}

TEST_P(HostSlab, TakesAndReadsPartOfAChunk) {
  const auto slab = make(mib(2));
  const vm::SlotId slot = slab->take().value();
  const std::vector<std::byte> bytes = pattern(3);
  ASSERT_TRUE(slab->write(slot, bytes.data(), Bytes{1000}).ok());
  std::vector<std::byte> back(1000);
  ASSERT_TRUE(slab->read(slot, back.data(), Bytes{1000}).ok());
  EXPECT_TRUE(std::equal(back.begin(), back.end(), bytes.begin()));
}

TEST_P(HostSlab, IsFullAtItsBudgetAndSaysSo) {
  const auto slab = make(kChunkBytes * 2 + Bytes{100});
  static_cast<void>(slab->take().value());
  const vm::SlotId second = slab->take().value();
  const Result<vm::SlotId> third = slab->take();
  ASSERT_FALSE(third.has_value());
  EXPECT_EQ(third.error().code(), StatusCode::kHostTierFull);
  const bool is_both = GetParam() == Kind::kBoth;
  EXPECT_THAT(third.error().message(), HasSubstr(is_both ? "2.0 MiB used" : "4.0 MiB used"));
  EXPECT_EQ(slab->used(), kChunkBytes * 2);
  slab->give_back(second);
  EXPECT_EQ(slab->used(), kChunkBytes);
  EXPECT_TRUE(slab->take().has_value());
}

TEST_P(HostSlab, UsesSlotsAgainBeforeItGrows) {
  const auto slab = make(mib(64));
  std::set<std::uint32_t> seen;
  for (int round = 0; round < 20; ++round) {
    const vm::SlotId slot = slab->take().value();
    seen.insert(slot.value);
    slab->give_back(slot);
  }
  EXPECT_EQ(seen.size(), 1U);
}

TEST_P(HostSlab, ABudgetLoweredBelowUseOnlyStopsGrowth) {
  const auto slab = make(mib(8));
  const vm::SlotId slot = slab->take().value();
  ASSERT_TRUE(slab->write(slot, pattern(9).data(), kChunkBytes).ok());
  slab->set_budgets({});
  EXPECT_FALSE(slab->take().has_value());
  std::vector<std::byte> back(kChunkBytes.to_size());
  ASSERT_TRUE(slab->read(slot, back.data(), kChunkBytes).ok());
  EXPECT_TRUE(is_pattern(back.data(), 9));
  slab->give_back(slot);
  EXPECT_FALSE(slab->take().has_value());
  slab->set_budgets({kChunkBytes, kChunkBytes});
  EXPECT_TRUE(slab->take().has_value());
}

TEST_P(HostSlab, DirectAddressesShowTheSameBytes) {
  const auto slab = make(mib(8));
  const vm::SlotId slot = slab->take().value();
  ASSERT_TRUE(slab->write(slot, pattern(5).data(), kChunkBytes).ok());
  const std::byte* const address = slab->address_of(slot);
  EXPECT_EQ(address != nullptr, GetParam() != Kind::kFile);
  if (address == nullptr) return;
  EXPECT_TRUE(is_pattern(address, 5));
}

INSTANTIATE_TEST_SUITE_P(All,
                         HostSlab,
                         ::testing::Values(Kind::kRam, Kind::kFile, Kind::kBoth),
                         [](const auto& kind) {
                           if (kind.param == Kind::kBoth) return "Both";
                           return kind.param == Kind::kRam ? "Ram" : "File";
                         });

TEST(RamSlab, OneCopyTakesWhatLiesInOneExtent) {
  const auto slab = std::move(*vm::make_host_slab("", mib(200)));
  for (int i = 0; i < 40; ++i)
    ASSERT_TRUE(slab->take().has_value());
  EXPECT_EQ(slab->num_together({0}, 40), 32U);
  EXPECT_EQ(slab->num_together({30}, 8), 2U);
  EXPECT_EQ(slab->num_together({33}, 3), 3U);
  EXPECT_EQ(slab->address_of({33}) + 2 * kChunkBytes.to_size(), slab->address_of({35}));
}

TEST(FileSlab, IsCopiedSlotBySlot) {
  const TempFolder folder;
  const auto slab = std::move(*vm::make_host_slab(folder.path(), mib(8)));
  ASSERT_TRUE(slab->take().has_value());
  EXPECT_EQ(slab->num_together({0}, 4), 1U);
}

TEST(FileSlab, LeavesNoNameAndLetsNobodyElseRead) {
  const TempFolder folder;
  const auto slab = vm::make_host_slab(folder.path(), mib(8));
  ASSERT_TRUE(slab.has_value());
  static_cast<void>((*slab)->take().value());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  int num_found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;  // the iterator's own descriptor is gone when it is looked at
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (target.rfind(folder.path(), 0) != 0) continue;
    ++num_found;
    struct stat figures{};
    ASSERT_EQ(::stat(entry.path().c_str(), &figures), 0);
    EXPECT_EQ(figures.st_mode & 0777U, 0600U);
    EXPECT_EQ(figures.st_nlink, 0U);
  }
  EXPECT_GE(num_found, 1);
}

// The host tier is mapped where memory is spilled: what is written there must come back.
TEST(FileSlab, AMappingAndReadsAndWritesPastThePageCacheShowTheSameBytes) {
  constexpr std::size_t kSize = kChunkBytes.to_size();
  const TempFolder folder;
  const auto slab = std::move(*vm::make_host_slab(folder.path(), mib(8)));
  RecordProperty("is_direct", static_cast<const vm::FileSlab&>(*slab).is_direct());
  static_cast<void>(slab->take().value());
  const vm::SlotId slot = slab->take().value();
  const vm::HostPlace place = *slab->place_of(slot);
  auto* const mapped = static_cast<std::byte*>(
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, place.fd, place.offset));
  auto* const pages = static_cast<std::byte*>(
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  ASSERT_NE(pages, MAP_FAILED);
  for (int round = 1; round < 20; ++round) {
    std::memset(pages, round, kSize);
    ASSERT_TRUE(slab->write(slot, pages, kChunkBytes).ok());
    EXPECT_EQ(std::memcmp(mapped, pages, kSize), 0) << "round " << round;
    for (std::size_t at = 0; at < kSize; at += 4096)
      mapped[at + static_cast<std::size_t>(round)] = std::byte(100 + round);
    ASSERT_TRUE(slab->read(slot, pages, kChunkBytes).ok());
    EXPECT_EQ(std::memcmp(mapped, pages, kSize), 0) << "round " << round;
    EXPECT_EQ(pages[8192 + round], std::byte(100 + round));
  }
  ::munmap(mapped, kSize);
  ::munmap(pages, kSize);
}

TEST(FileSlab, WithoutDirectAccessItGoesThroughThePageCache) {
  const TempFolder folder;
  if (::mount("ramfs", folder.path().c_str(), "ramfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "cannot mount a file system without O_DIRECT";
  }
  {
    const auto slab = std::move(*vm::make_host_slab(folder.path(), mib(8)));
    EXPECT_FALSE(static_cast<const vm::FileSlab&>(*slab).is_direct());
  }
  ::umount2(folder.path().c_str(), MNT_DETACH);
}

TEST(FileSlab, NamesAFolderItCannotUse) {
  const auto slab = vm::make_host_slab("/nowhere/at/all", mib(8));
  ASSERT_FALSE(slab.has_value());
  EXPECT_EQ(slab.error().code(), StatusCode::kIo);
  EXPECT_THAT(slab.error().message(), HasSubstr("/nowhere/at/all"));
}

}  // namespace
}  // namespace gpushare::testing
