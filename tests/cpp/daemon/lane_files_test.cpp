#include "csrc/daemon/jobs/lane_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "csrc/wire/limits.h"

namespace gpushare::daemon {
namespace {

constexpr std::uint32_t kUser = 1000;

// Memory that the file holds.
Bytes held(int file) {
  struct stat info = {};
  EXPECT_EQ(::fstat(file, &info), 0);
  return Bytes{info.st_blocks * 512};
}

void write_slot(int file, std::uint32_t slot) {
  const std::vector<char> bytes(wire::kLaneSlotBytes.to_size(), 'x');
  const Bytes offset = wire::kLaneSlotBytes * slot;
  ASSERT_EQ(::pwrite(file, bytes.data(), bytes.size(), offset.value()),
            static_cast<ssize_t>(bytes.size()));
}

TEST(LaneFiles, EmptySlotsGiveTheirMemoryBack) {
  LaneFiles files;
  const int file = files.file_of(kUser).value();
  for (const std::uint32_t slot : {0U, 1U, 2U})
    write_slot(file, slot);
  files.carry_out({{.uid = kUser, .empty = {0, 2}}});
  EXPECT_EQ(held(file), wire::kLaneSlotBytes);
}

TEST(LaneFiles, WhatAMemberThatIsGoneWroteElsewhereIsGivenBack) {
  LaneFiles files;
  const int file = files.file_of(kUser).value();
  for (const std::uint32_t slot : {0U, 1U, 2U, 7U, 100U, wire::kMaxLaneSlot - 1})
    write_slot(file, slot);
  files.carry_out({{.uid = kUser, .empty = {}, .only = std::set<std::uint32_t>{1, 7, 9}}});
  EXPECT_EQ(held(file), wire::kLaneSlotBytes * 2);
  char kept = 0;
  ASSERT_EQ(::pread(file, &kept, 1, (wire::kLaneSlotBytes * 7).value()), 1);
  EXPECT_EQ(kept, 'x');
  files.carry_out({{.uid = kUser, .empty = {}, .only = std::set<std::uint32_t>{}}});
  EXPECT_EQ(held(file), Bytes{});
}

}  // namespace
}  // namespace gpushare::daemon
