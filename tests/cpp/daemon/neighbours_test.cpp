#include "csrc/daemon/machine/neighbours.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cpp/support/daemon_fake_proc.h"
#include "tests/cpp/support/daemon_process.h"

namespace gpushare::daemon {
namespace {

using testing::add_process;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using testing::TempFolder;
using testing::torch_maps;

auto pid_is(std::int32_t pid) { return Field(&Neighbour::pid, pid); }

TEST(Neighbours, FindsProcessesThatMapTorch) {
  const TempFolder root;
  using namespace std::string_view_literals;
  add_process(root.path(),
              {.pid = 42, .command = "python\0train.py\0--lr\0"sv, .maps = torch_maps()});
  add_process(root.path(), {.pid = 43, .maps = "7f00-7f10 r-xp 0 0 0 /usr/lib/libc.so.6\n"});
  const auto found = find_neighbours({}, root.path()).found;
  ASSERT_THAT(found, ElementsAre(pid_is(42)));
  EXPECT_EQ(found[0].uid, ::geteuid());
  EXPECT_EQ(found[0].resident, Bytes{100'000 * ::sysconf(_SC_PAGESIZE)});
  EXPECT_EQ(found[0].command, "python train.py --lr");
}

TEST(Neighbours, JobsAndTheirChildrenAtAnyDepthAreNone) {
  const TempFolder root;
  add_process(root.path(), {.pid = 10, .maps = torch_maps()});
  add_process(root.path(), {.pid = 11, .parent = 10, .maps = torch_maps()});
  add_process(root.path(), {.pid = 12, .parent = 11, .maps = torch_maps()});
  add_process(root.path(), {.pid = 13, .parent = 9, .maps = torch_maps()});
  EXPECT_THAT(find_neighbours({10}, root.path()).found, ElementsAre(pid_is(13)));
  EXPECT_THAT(find_neighbours({11}, root.path()).found, ElementsAre(pid_is(10), pid_is(13)));
}

TEST(Neighbours, SmallAndVanishingProcessesAreSkipped) {
  const TempFolder root;
  add_process(root.path(), {.pid = 20, .resident_pages = 10, .maps = torch_maps()});
  add_process(root.path(), {.pid = 21, .maps = torch_maps()});
  std::filesystem::remove(root.path() + "/proc/21/maps");
  testing::write_file(root.path() + "/proc/22/stat", "nonsense");
  testing::write_file(root.path() + "/proc/uptime", "1 1");
  EXPECT_THAT(find_neighbours({}, root.path()).found, IsEmpty());
}

// Their maps belong to other users. A link to itself cannot be opened by anybody, root included.
TEST(Neighbours, PythonProcessesThatCannotBeLookedAtAreCounted) {
  const TempFolder root;
  using namespace std::string_view_literals;
  add_process(root.path(), {.pid = 50, .command = "python\0train.py\0"sv});
  add_process(root.path(), {.pid = 51, .command = "train\0"sv});
  testing::write_file(root.path() + "/proc/51/comm", "python3\n");
  add_process(root.path(), {.pid = 52, .command = "postgres\0"sv});
  add_process(root.path(), {.pid = 53, .resident_pages = 10});
  for (const char* pid : {"50", "51", "52", "53"}) {
    const auto maps = std::filesystem::path(root.path()) / "proc" / pid / "maps";
    std::filesystem::remove(maps);
    std::filesystem::create_symlink("maps", maps);
  }
  const Neighbours neighbours = find_neighbours({}, root.path());
  EXPECT_THAT(neighbours.found, IsEmpty());
  EXPECT_EQ(neighbours.num_unreadable, 2U);
}

// The scan is on the coordinator's loop, and anybody may have maps of hundreds of megabytes.
TEST(Neighbours, LongMapsAreNotReadToTheirEnd) {
  const TempFolder root;
  using namespace std::string_view_literals;
  std::string maps;
  while (maps.size() < (std::size_t{1} << 20))
    maps += "7f00-7f10 r-xp 0 0 0 /tmp/" + std::string(4000, 'x') + "\n";
  for (std::int32_t pid = 60; pid < 70; ++pid)
    add_process(root.path(), {.pid = pid, .command = "python\0"sv, .maps = maps + torch_maps()});
  const Neighbours neighbours = find_neighbours({}, root.path());
  EXPECT_THAT(neighbours.found, IsEmpty());
  EXPECT_EQ(neighbours.num_unreadable, 10U);
}

TEST(Neighbours, AParentLoopEnds) {
  const TempFolder root;
  add_process(root.path(), {.pid = 30, .parent = 31, .maps = torch_maps()});
  add_process(root.path(), {.pid = 31, .parent = 30});
  EXPECT_THAT(find_neighbours({}, root.path()).found, ElementsAre(pid_is(30)));
}

TEST(Neighbours, WithoutProcThereAreNone) {
  EXPECT_THAT(find_neighbours({}, "/nonexistent").found, IsEmpty());
}

}  // namespace
}  // namespace gpushare::daemon
