// A child process that does nothing until it is killed, for tests of what watches processes.
//
// The test process must have one thread.
#pragma once

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

namespace gpushare::testing {

class IdleChild {
 public:
  IdleChild() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // also where the test does not come to its end
    for (;;)
      ::pause();
  }
  ~IdleChild() { kill(); }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  // Returns once the kernel has stopped it, or has let it go on.
  void suspend() { change(SIGSTOP, WUNTRACED); }
  void go_on() { change(SIGCONT, WCONTINUED); }
  // It is gone, and its number is free again.
  void kill() {
    if (is_reaped_) return;
    change(SIGKILL, 0);
    is_reaped_ = true;
  }

 private:
  void change(int signal, int options) const {
    EXPECT_EQ(::kill(pid_, signal), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, options), pid_);
  }

  pid_t pid_;
  bool is_reaped_ = false;
};

}  // namespace gpushare::testing
