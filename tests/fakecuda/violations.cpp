#include "tests/fakecuda/violations.h"

#include <cstdio>

namespace fakecuda {

void Violations::add(const std::string& line) {
  lines_.push_back(line);
  std::fprintf(stderr, "fakecuda: violation: %s\n", line.c_str());
}

}  // namespace fakecuda
