// gpushared: the coordinator's process. Exit codes: 0 ended well, 1 failed, 2 wrong use. Options
// are read before anything else is done; run.cpp starts everything.
#include <cstdio>
#include <string>
#include <vector>

#include "csrc/daemon/config/options.h"
#include "csrc/daemon/process/out_of_memory.h"
#include "csrc/daemon/run.h"

int main(int argc, char** argv) {
  gpushare::daemon::end_clearly_without_memory();
  constexpr int kWrongUse = 2;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto parsed = gpushare::daemon::parse_command_line(arguments);
  if (!parsed) {
    std::fprintf(stderr, "gpushared: %s\n", parsed.error().message().c_str());
    return kWrongUse;
  }
  if (!parsed->text.empty()) {
    std::fputs(parsed->text.c_str(), stdout);
    return 0;
  }
  return gpushare::daemon::run(parsed->options);
}
