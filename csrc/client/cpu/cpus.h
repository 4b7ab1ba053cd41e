// The CPUs that this process may use, and parts of them.
#pragma once

#include <sched.h>

#include <compare>
#include <cstddef>
#include <string>
#include <vector>

#include "csrc/wire/core_share.h"

namespace gpushare::client {

// A CPU by the kernel's numbers. CPUs of one core share its units. In the order of the members,
// CPUs of one core are next to each other, and so are cores of one package.
struct Cpu {
  int package = 0;
  int core = 0;  // in its package
  std::size_t number = 0;
  auto operator<=>(const Cpu&) const = default;
};

// The CPUs of the set, in order. `root`: the folder in which sys/ is.
std::vector<Cpu> cpus_of(const cpu_set_t& set, const std::string& root = "/");
// The numbers of the CPUs of one share. A share has whole cores, of as few packages as possible,
// and shares differ by one core at most. Empty: there are fewer cores than shares. pre: `cpus` is
// in order.
std::vector<std::size_t> part_of(const std::vector<Cpu>& cpus, wire::CoreShare share);

}  // namespace gpushare::client
