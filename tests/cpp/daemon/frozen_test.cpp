#include "csrc/daemon/machine/frozen.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/cpp/support/daemon_fake_proc.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::TempFolder;
using testing::write_file;

class Frozen : public ::testing::Test {
 protected:
  void set_groups(const std::string& text) { write("/proc/7", "cgroup", text); }
  void write(const std::string& folder, const std::string& name, const std::string& text) {
    write_file(root_.path() + folder + "/" + name, text);
  }
  [[nodiscard]] bool is_frozen() const { return daemon::is_frozen(7, root_.path()); }

  const TempFolder root_;
};

TEST_F(Frozen, IsSeenWithOneHierarchy) {
  set_groups("0::/docker/ab\n");
  EXPECT_FALSE(is_frozen()) << "the group is not visible";
  write("/sys/fs/cgroup/docker/ab", "cgroup.events", "populated 1\nfrozen 0\n");
  EXPECT_FALSE(is_frozen());
  write("/sys/fs/cgroup/docker/ab", "cgroup.events", "populated 1\nfrozen 1\n");
  EXPECT_TRUE(is_frozen());
}

TEST_F(Frozen, IsSeenWithAHierarchyForEachController) {
  set_groups("nonsense\n5:cpu,cpuacct:/docker/ab\n4:freezer:/docker/ab\n0::/init.scope\n");
  write("/sys/fs/cgroup/freezer/docker/ab", "freezer.state", "THAWED\n");
  EXPECT_FALSE(is_frozen());
  write("/sys/fs/cgroup/freezer/docker/ab", "freezer.state", "FROZEN\n");
  EXPECT_TRUE(is_frozen());
  write("/sys/fs/cgroup/freezer/docker/ab", "freezer.state", "THAWED\n");
  write("/sys/fs/cgroup/unified/init.scope", "cgroup.events", "frozen 1\n");
  EXPECT_TRUE(is_frozen()) << "both versions are there";
}

TEST_F(Frozen, AProcessThatHasEndedIsNot) { EXPECT_FALSE(is_frozen()); }

}  // namespace
}  // namespace gpushare::daemon
