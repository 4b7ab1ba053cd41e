#include "csrc/base/process/start_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

namespace gpushare {
namespace {

TEST(StartThread, TheThreadTakesNoSignalAndTheCallerKeepsItsOwn) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  bool is_quiet = false;
  Result<std::thread> thread = start_thread("a test", [&is_quiet] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    is_quiet = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1;
  });
  ASSERT_TRUE(thread.has_value());
  thread->join();
  EXPECT_TRUE(is_quiet);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

// A user who may have no process more. Root is not bound by that limit, so it becomes another user.
[[noreturn]] void start_one_beyond_the_limit() {
  constexpr uid_t kNobody = 65534;
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) std::_Exit(1);
  if (::geteuid() == 0 && ::setuid(kNobody) != 0) std::_Exit(1);
  const Result<std::thread> thread = start_thread("a test", [] {});
  if (thread.has_value()) std::_Exit(2);
  static_cast<void>(std::fputs(thread.error().message().c_str(), stderr));
  std::_Exit(thread.error().code() == StatusCode::kUnavailable ? 42 : 3);
}

TEST(StartThreadDeathTest, OneThatCannotBeStartedIsAnErrorAndNoCrash) {
  EXPECT_EXIT(start_one_beyond_the_limit(), ::testing::ExitedWithCode(42),
              "no thread for a test could be started .*ulimit -u");
}

}  // namespace
}  // namespace gpushare
