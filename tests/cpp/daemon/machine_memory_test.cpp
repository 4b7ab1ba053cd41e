#include "csrc/daemon/machine/machine_memory.h"

#include <gtest/gtest.h>

#include "tests/cpp/support/daemon_fake_proc.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::write_file;

class MachineMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    write_file(root_.path() + "/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
  }
  void set_cgroup(const std::string& lines) const {
    write_file(root_.path() + "/proc/self/cgroup", lines);
  }
  void set_limit(const std::string& path, const std::string& limit) const {
    write_file(root_.path() + "/sys/fs/cgroup" + path, limit);
  }
  Bytes measured() const { return machine_memory(root_.path()).value_or(Bytes{-1}); }

  testing::TempFolder root_;
};

TEST_F(MachineMemory, IsMemTotalWithoutCgroups) { EXPECT_EQ(measured(), gib(16)); }

TEST_F(MachineMemory, IsTheLeastLimitOnTheWayUp) {
  set_cgroup("0::/user.slice/job.scope\n");
  set_limit("/user.slice/job.scope/memory.max", "max\n");
  set_limit("/user.slice/memory.max", "4294967296\n");
  EXPECT_EQ(measured(), gib(4));
  set_limit("/user.slice/job.scope/memory.max", "1073741824\n");
  EXPECT_EQ(measured(), gib(1));
}

TEST_F(MachineMemory, KnowsVersionOne) {
  set_cgroup("9:name=systemd:/x\n4:memory:/box/inner\n0::/\n");
  set_limit("/memory/box/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(measured(), gib(2));
}

TEST_F(MachineMemory, SeesTheLimitOfAContainersRoot) {
  set_cgroup("0::/\n");
  set_limit("/memory.max", "3221225472\n");
  EXPECT_EQ(measured(), gib(3));
}

TEST_F(MachineMemory, ALimitAboveTheMachineIsNone) {
  set_cgroup("4:memory:/\n");
  set_limit("/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(measured(), gib(16));
}

TEST_F(MachineMemory, WithoutMeminfoIsAnError) {
  EXPECT_EQ(machine_memory("/nonexistent").error().code(), StatusCode::kIo);
}

TEST_F(MachineMemory, OfThisMachineIsPlausible) {
  const auto memory = machine_memory();
  ASSERT_TRUE(memory.has_value());
  EXPECT_GT(*memory, mib(64));
}

}  // namespace
}  // namespace gpushare::daemon
