// Going to the background, with the first process waiting until the daemon serves or has failed.
//
// go_to_background() forks twice. In the first process it does not return: that one exits 0 when
// the daemon has called report_ready(), or 1 with the daemon's error on stderr. In the daemon (own
// session, cwd /, stdio in the log file) it returns a Launch to report through. A daemon that dies
// without a report counts as failed.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace gpushare::daemon {

class Launch {
 public:
  Launch() = default;  // in the foreground: reports go nowhere
  explicit Launch(UniqueFd pipe) : pipe_(std::move(pipe)) {}
  void report_ready();
  void report_failure(const Status& status);

 private:
  UniqueFd pipe_;
};

// Opens the log for appending (0600). pre: one thread. errors: kIo, in the first process.
Result<Launch> go_to_background(const std::string& log_file);

}  // namespace gpushare::daemon
