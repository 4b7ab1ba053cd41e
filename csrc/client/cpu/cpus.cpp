// Lists the CPUs that the process may use, sorted by package and core, and cuts the list into parts
// of whole cores. The parts follow each other in that order, so a part spans as few packages as
// possible. Where the kernel does not name cores, each CPU counts as a core of its own.
#include "csrc/client/cpu/cpus.h"

#include <algorithm>
#include <cstddef>
#include <fstream>

#include <fmt/format.h>

namespace gpushare::client {
namespace {

// The number in a file of the kernel, or `otherwise` where there is none.
int read_number(const std::string& path, int otherwise) {
  std::ifstream file(path);
  int number = 0;
  return file >> number ? number : otherwise;
}

}  // namespace

std::vector<Cpu> cpus_of(const cpu_set_t& set, const std::string& root) {
  std::vector<Cpu> cpus;
  for (std::size_t number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &set)) continue;
    const std::string folder =
        fmt::format("{}sys/devices/system/cpu/cpu{}/topology/", root, number);
    cpus.push_back({.package = read_number(folder + "physical_package_id", 0),
                    .core = read_number(folder + "core_id", static_cast<int>(number)),
                    .number = number});
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

std::vector<std::size_t> part_of(const std::vector<Cpu>& cpus, wire::CoreShare share) {
  const auto is_same_core = [](const Cpu& a, const Cpu& b) {
    return a.package == b.package && a.core == b.core;
  };
  std::vector<std::size_t> cores;  // where each begins
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    if (i == 0 || !is_same_core(cpus[i - 1], cpus[i])) cores.push_back(i);
  }
  std::vector<std::size_t> numbers;
  if (cores.size() < share.of) return numbers;
  const std::size_t first = cores.size() * share.number / share.of;
  const std::size_t end = cores.size() * (std::size_t{share.number} + 1) / share.of;
  const std::size_t end_cpu = end == cores.size() ? cpus.size() : cores[end];
  for (std::size_t i = cores[first]; i < end_cpu; ++i)
    numbers.push_back(cpus[i].number);
  return numbers;
}

}  // namespace gpushare::client
