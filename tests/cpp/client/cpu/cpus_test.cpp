#include "csrc/client/cpu/cpus.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gpushare::client {
namespace {

using Numbers = std::vector<std::size_t>;

// Two packages of two cores of two CPUs each, numbered as many kernels do: siblings are four apart.
std::vector<Cpu> two_packages() {
  std::vector<Cpu> cpus;
  for (int package = 0; package < 2; ++package) {
    for (int core = 0; core < 2; ++core) {
      const auto first = static_cast<std::size_t>(package * 2 + core);
      cpus.push_back({package, core, first});
      cpus.push_back({package, core, first + 4});
    }
  }
  return cpus;
}

TEST(Cpus, APartIsWholeCoresOfOnePackage) {
  EXPECT_EQ(part_of(two_packages(), {0, 2}), (Numbers{0, 4, 1, 5}));
  EXPECT_EQ(part_of(two_packages(), {1, 2}), (Numbers{2, 6, 3, 7}));
  EXPECT_EQ(part_of(two_packages(), {2, 4}), (Numbers{2, 6}));
}

TEST(Cpus, PartsCoverAllCpusOnce) {
  for (std::uint16_t of = 1; of <= 4; ++of) {
    std::multiset<std::size_t> all;
    for (std::uint16_t number = 0; number < of; ++number) {
      const Numbers part = part_of(two_packages(), {number, of});
      EXPECT_FALSE(part.empty()) << number << " of " << of;
      all.insert(part.begin(), part.end());
    }
    EXPECT_EQ(all, (std::multiset<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7})) << of;
  }
}

TEST(Cpus, WithFewerCoresThanPartsThereIsNone) {
  for (std::uint16_t number = 0; number < 5; ++number)
    EXPECT_EQ(part_of(two_packages(), {number, 5}), Numbers{}) << number;
  EXPECT_EQ(part_of({}, {0, 2}), Numbers{});
}

TEST(Cpus, AreOrderedAsTheKernelSaysThatTheyAreBuilt) {
  const std::filesystem::path root =
      std::filesystem::path(::testing::TempDir()) / "gpushare_cpus_test";
  for (const Cpu& cpu : two_packages()) {
    const auto folder = root / fmt::format("sys/devices/system/cpu/cpu{}/topology", cpu.number);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "physical_package_id") << cpu.package << "\n";
    std::ofstream(folder / "core_id") << cpu.core << "\n";
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t number = 0; number < 8; ++number)
    CPU_SET(number, &set);
  EXPECT_EQ(cpus_of(set, root.string() + "/"), two_packages());
  CPU_CLR(4, &set);
  EXPECT_EQ(part_of(cpus_of(set, root.string() + "/"), {0, 4}), Numbers{0});
  std::filesystem::remove_all(root);
  // Where it says nothing each is a core.
  EXPECT_EQ(part_of(cpus_of(set, root.string() + "/"), {1, 7}), Numbers{1});
}

}  // namespace
}  // namespace gpushare::client
