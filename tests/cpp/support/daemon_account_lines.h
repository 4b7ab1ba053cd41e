// The lines of accounts that a daemon's file has.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace gpushare::testing {

// Those of the file at `path`, without a last one that has no end: its writer may still be at it.
// None where there is no file.
inline std::vector<nlohmann::json> account_lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line) && !file.eof();)
    lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace gpushare::testing
