// The illegal accesses that were seen, in words.
#pragma once

#include <string>
#include <vector>

namespace fakecuda {

class Violations {
 public:
  // Keeps the line and prints it.
  void add(const std::string& line);
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  void clear() { lines_.clear(); }

 private:
  std::vector<std::string> lines_;
};

}  // namespace fakecuda
