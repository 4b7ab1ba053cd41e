// Unmanaged neighbours: processes that use the same device without asking us. On a CPU these are
// processes that map libtorch_cpu.so and are neither jobs nor children of jobs (DataLoader
// workers).
//
// What it does not do: it counts none of their bytes in the ledger; it is for the eyes of whoever
// asks for the status, and for error texts. Of other users' processes /proc shows no maps: those
// that may well be Python are counted, not named.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "csrc/base/units.h"

namespace gpushare::daemon {

struct Neighbour {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  Bytes resident;
  std::string command;
  bool operator==(const Neighbour&) const = default;
};

struct Neighbours {
  std::vector<Neighbour> found;  // in the order of pids
  // Processes with "python" in their name or command whose maps this user may not read, or whose
  // maps are so long that they were not read to their end.
  std::uint64_t num_unreadable = 0;
};

// `root` stands before /proc; empty but in tests.
Neighbours find_neighbours(const std::set<std::int32_t>& jobs, const std::string& root = "");

}  // namespace gpushare::daemon
